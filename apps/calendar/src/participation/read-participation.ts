import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

export interface Participation {
  id: string;
  appointmentReference: string;
  /** An object of the REST interface (2.6), as JSON. */
  participation: string;
}

/** See read-participation.sql. Undefined if there is none, or if it is an expired reservation. */
export async function readParticipation(
  db: Kysely<CalendarSchema>,
  request: { crmId: string } & ({ participationId: string } | { providerId: string; reference: string }),
): Promise<Participation | undefined> {
  return (await callFunction<Participation | null>(db, { name: 'read_participation', request })) ?? undefined;
}
