import { DomainError } from '@scheduling/errors';
import type { Selectable } from 'kysely';
import type { TimeslotTable } from '../db/schema.ts';

export type TimeslotState = 'CREATED' | 'BOOKABLE';

export type TimeslotRow = Selectable<TimeslotTable>;

/** A timeslot as callers see it, with the appointments of its resource that fall within its window. */
export interface TimeslotRecord {
  /** An object of the REST interface (2.4) without the appointments; see timeslot-json.sql. */
  json: string;
  /** Each an object of the REST interface (2.5). */
  appointments: string[];
}

export function timeslotHasAppointments(references: string[]): DomainError {
  const named = references.slice(0, maxNamed).join(', ') + (references.length > maxNamed ? ' and more' : '');
  return new DomainError('timeslot.has_appointments', {
    text: `The timeslot has appointments that are not cancelled: ${named}.`,
  });
}

/** How many appointments an error names. */
export const maxNamed = 10;
