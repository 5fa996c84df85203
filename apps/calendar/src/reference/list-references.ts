import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';
import { anonymousReference } from '../participation/anonymise-participations.ts';

export interface ReferencesQuery {
  crmId: string;
  participationIds: string[];
  appointmentIds: string[];
}

export interface References {
  participations: { id: string; reference: string; reservedUntil: Date | null }[];
  appointments: { id: string; reference: string; start: Date }[];
}

/**
 * The references of the participations and appointments with these ids, without those that do not exist or lead to
 * nobody any more.
 */
export async function listReferences(
  { database: { kysely } }: CalendarDependencies,
  { crmId, participationIds, appointmentIds }: ReferencesQuery,
): Promise<References> {
  const [participations, appointments] = await Promise.all([
    kysely
      .selectFrom('participation')
      .select(['id', 'reference', 'reservedUntil'])
      .where('crmId', '=', crmId)
      .where('id', '=', sql<string>`ANY(${participationIds}::uuid[])`)
      .where('reference', '<>', anonymousReference)
      .execute(),
    kysely
      .selectFrom('appointment')
      .select(['id', 'reference', 'startsAt as start'])
      .where('crmId', '=', crmId)
      .where('id', '=', sql<string>`ANY(${appointmentIds}::uuid[])`)
      .execute(),
  ]);
  return { participations, appointments };
}
