import type { Database } from '@scheduling/postgres';
import type { NotificationSchema } from '../db/schema.ts';

/**
 * The organizers of the events of participations, by their ids, as far as mails have put these events into calendars.
 */
export async function findOrganizers(
  { kysely }: Database<NotificationSchema>,
  crmId: string,
  participationIds: string[],
): Promise<Map<string, string>> {
  if (participationIds.length === 0) return new Map();
  const rows = await kysely
    .selectFrom('eventOrganizer')
    .select(['participationId', 'address'])
    .where('crmId', '=', crmId)
    .where('participationId', 'in', participationIds)
    .execute();
  return new Map(rows.map(({ participationId, address }) => [participationId, address]));
}
