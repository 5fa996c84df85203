import { isAddress } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';

const maxFound = 100;

/**
 * The ids of participations, of those who were embedded in an appointment, with this address in any of its forms; more
 * only once these have been removed.
 */
export async function findEmbeddedParticipations(
  { database }: Pick<CalendarDependencies, 'database'>,
  { crmId, email }: { crmId: string; email: string },
): Promise<string[]> {
  const rows = await database.kysely
    .selectFrom('participation')
    .select('id')
    .where('crmId', '=', crmId)
    .where('email', 'is not', null)
    .where(isAddress(sql`email`, email))
    .limit(maxFound)
    .execute();
  return rows.map(({ id }) => id);
}
