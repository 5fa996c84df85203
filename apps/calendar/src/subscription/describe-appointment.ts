import type { FeedEvent } from '@scheduling/calendar-file/feed';
import type { Location as Place } from '@scheduling/contracts/calendar/v1';
import { linesOfLocation, singleLine } from '@scheduling/presentation';
import type { SpokenLanguage } from '@scheduling/runtime';
import type { Location } from '../db/schema.ts';
import { texts } from './texts.ts';

/** See read-calendar.sql. Times are in seconds since 1970. */
export type AppointmentFacts = [
  id: string,
  start: number,
  end: number,
  description: string | null,
  productReference: string,
  address: Location | null,
  capacity: number,
  booked: number,
  requested: number,
  /** Null if nobody is named. */
  persons: PersonFacts[] | null,
];

/** What is not stored, or not shown, is absent or null. */
export type PersonFacts = [isBooked: boolean, name: string | null, ...contact: (string | null)[]];

/**
 * Raised whenever the same facts become another text: then calendars are told that events have changed. A test compares
 * the texts.
 */
export const writing = 1;

/** The event of an appointment. It has nothing that changes without the appointment, such as the provider's name. */
export function describeAppointment(
  facts: AppointmentFacts,
  language: SpokenLanguage,
  namesPersons: boolean,
): FeedEvent {
  const [id, start, end, description, productReference, address, capacity, booked, requested, persons] = facts;
  const { seats, others } = texts[language];
  const title = singleLine(description ?? '') || singleLine(productReference);
  const named = (persons ?? []).map((person) => describePerson(person, language));
  const unnamed = booked + requested - named.length;
  return {
    id,
    start,
    end,
    summary: `${title} (${seats(booked, capacity, requested)})`,
    location: linesOfLocation(placeOf(address), language).join(', '),
    description: [...named, ...(namesPersons && unnamed > 0 ? [others(unnamed)] : [])].join('\n'),
    isTentative: booked === 0 && requested > 0,
  };
}

function placeOf(address: Location | null): Place | undefined {
  if (address === null) return undefined;
  if (typeof address === 'string') return { kind: { $case: 'text', value: address } };
  return { kind: { $case: 'address', value: address } };
}

function describePerson([isBooked, name, ...contact]: PersonFacts, language: SpokenLanguage): string {
  const { requested, nobody } = texts[language];
  const who = singleLine(name ?? '') || nobody;
  const how = contact.map((text) => singleLine(text ?? '')).filter(Boolean);
  return [isBooked ? who : `${who} (${requested})`, ...how].join(', ');
}
