import type { ReplayUserDeletionsResponse } from '@scheduling/contracts/identity/v1';
import { type Broker, events, readPublished, userReplayConsumer } from '@scheduling/events';
import { recordAction } from '@scheduling/messaging';
import type { IdentityDependencies } from '../dependencies.ts';
import { eraseUser } from './delete-user.ts';

/**
 * Repeats every deletion of a user that was published since a backup was made, after any of the databases was restored from it. The deletions are known
 * from the events in NATS, which are kept for 7 days; they are published again, so other services repeat them, too. Rejects with `broker.unavailable`.
 */
export async function replayUserDeletions({ database }: IdentityDependencies, broker: Broker, since: Date): Promise<ReplayUserDeletionsResponse> {
  const published = await readPublished(broker, userReplayConsumer, events.userDeleted, since);
  const deleted = new Map(published.events.map(({ crmId, userId }) => [`${crmId} ${userId}`, { crmId, id: userId }]));
  for (const user of deleted.values()) await database.transaction((tx) => eraseUser(tx, user));
  await database.transaction((tx) => recordAction(tx, 'user-deletions.replay', since.toISOString()));
  return { replayed: deleted.size, eventsReachBackTo: published.reachBackTo };
}
