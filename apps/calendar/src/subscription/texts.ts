import type { SpokenLanguage } from '@scheduling/runtime';

interface Texts {
  /** How many take part, and how many ask to. */
  seats(booked: number, capacity: number, requested: number): string;
  /** After the name of somebody who asks to take part. */
  requested: string;
  /** For somebody whose name is not stored any more. */
  nobody: string;
  /** How many others there are. */
  others(count: number): string;
}

export const texts: Record<SpokenLanguage, Texts> = {
  de: {
    seats: (booked, capacity, requested) =>
      `${booked} von ${capacity}${requested === 0 ? '' : `, ${requested} angefragt`}`,
    requested: 'angefragt',
    nobody: 'Name entfernt',
    others: (count) => (count === 1 ? 'und eine weitere Person' : `und ${count} weitere Personen`),
  },
  en: {
    seats: (booked, capacity, requested) =>
      `${booked} of ${capacity}${requested === 0 ? '' : `, ${requested} requested`}`,
    requested: 'requested',
    nobody: 'Name removed',
    others: (count) => (count === 1 ? 'and one more' : `and ${count} more`),
  },
};
