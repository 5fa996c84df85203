import { DomainError } from '@scheduling/errors';
import { type Kysely, type Selectable, sql } from 'kysely';
import { appointmentJson } from '../appointment/appointment-json.ts';
import { archivedUntil } from '../db/clock.ts';
import type { CalendarSchema, TimeslotTable } from '../db/schema.ts';
import { selectFromWindows } from './window.ts';

export type TimeslotState = 'CREATED' | 'BOOKABLE';

export type TimeslotRow = Selectable<TimeslotTable>;

/** A timeslot as callers see it, with the appointments of its resource that fall within its window. */
export interface TimeslotRecord {
  row: TimeslotRow;
  /** Each an object of the REST interface (2.5). */
  appointments: string[];
}

export async function withAppointments(
  db: Kysely<CalendarSchema>,
  crmId: string,
  rows: TimeslotRow[],
  archiveAfterDays: number,
): Promise<TimeslotRecord[]> {
  if (rows.length === 0) return [];
  const found = await selectAppointmentsIn(db, crmId, rows.map((row) => row.id), archiveAfterDays).execute();
  const byTimeslot = Map.groupBy(found, ({ timeslotId }) => timeslotId);
  return rows.map((row) => ({ row, appointments: (byTimeslot.get(row.id) ?? []).map(({ json }) => json) }));
}

/** Appointments that fall within the windows of the given timeslots, by start; one row for each timeslot that contains the appointment. */
export function selectAppointmentsIn(db: Kysely<CalendarSchema>, crmId: string, timeslotIds: string[], archiveAfterDays: number) {
  const found = selectFromWindows(db)
    .selectAll('appointment')
    .select('timeslot.id as timeslotId')
    .select(sql<boolean>`appointment.ends_at <= ${archivedUntil(archiveAfterDays)}`.as('archived'))
    .where('timeslot.crmId', '=', crmId)
    .where(sql<boolean>`timeslot.id = ANY(${timeslotIds}::uuid[])`);
  return db.selectFrom(found.as('appointment')).select(['timeslotId', appointmentJson.as('json')]).orderBy('startsAt').orderBy('id');
}

export function timeslotHasAppointments(references: string[]): DomainError {
  const named = references.slice(0, maxNamed).join(', ') + (references.length > maxNamed ? ' and more' : '');
  return new DomainError('timeslot.has_appointments', { text: `The timeslot has appointments that are not cancelled: ${named}.` });
}

/** How many appointments an error names. */
export const maxNamed = 10;
