import { undefinedIfNotFound } from '@scheduling/errors';
import { ago } from '@scheduling/postgres';
import type { CalendarDependencies } from '../dependencies.ts';
import { storeProvider } from './provider-copy.ts';

/**
 * Ends deletions of providers that a process has not completed: what identity still has is open again, and the rest is
 * forgotten. Younger ones are left alone, because a copy that was read before the deletion may still be stored.
 *
 * @returns how many it has settled
 */
export async function settleClosedProviders(
  { database, identity }: Pick<CalendarDependencies, 'database' | 'identity'>,
  limit: number,
): Promise<number> {
  const closed = await database.kysely
    .selectFrom('closedProvider')
    .select(['crmId', 'id', 'version'])
    .where('closedAt', '<', ago('1 minute'))
    .orderBy('closedAt')
    .limit(limit)
    .execute();
  for (const { crmId, id, version } of closed) {
    const answer = await undefinedIfNotFound(
      identity.reopenProvider({ crmId, providerId: id, closedVersion: version }),
    );
    if (answer !== undefined) await storeProvider(database.kysely, crmId, answer.provider!);
    else await database.kysely.deleteFrom('closedProvider').where('crmId', '=', crmId).where('id', '=', id).execute();
  }
  return closed.length;
}
