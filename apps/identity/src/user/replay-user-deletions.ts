import type { ReplayUserDeletionsResponse } from '@scheduling/contracts/identity/v1';
import { type Broker, events, readPublished, userReplayConsumer } from '@scheduling/events';
import { recordAction } from '@scheduling/messaging';
import type { IdentityDependencies } from '../dependencies.ts';
import { eraseUsers, type UserId } from './delete-user.ts';

export interface ReplayUserDeletions {
  /** When the backup was made. */
  since: Date;
  /** Where the previous part ended; undefined for the first. */
  continuation: string | undefined;
}

/** Such a part, and reading the events for it, takes some tenths of a second, of the 2 s that a call may take. */
const maxPerPart = 1_000;

/**
 * Repeats the deletions of users that were published since a backup was made, after any of the databases was restored
 * from it: those of one part, in one transaction. The deletions are known from the events in NATS, which are kept for 7
 * days; they are published again, so other services repeat them, too. Users who own something are not deleted, but
 * returned. Rejects with `broker.unavailable`.
 */
export async function replayUserDeletions(
  { database }: IdentityDependencies,
  broker: Broker,
  { since, continuation }: ReplayUserDeletions,
): Promise<ReplayUserDeletionsResponse> {
  const published = await readPublished(broker, userReplayConsumer, events.userDeleted, since);
  const deleted = new Map(published.events.map(({ crmId, userId }) => [`${crmId} ${userId}`, { crmId, id: userId }]));
  const { part, next } = takePart(deleted, continuation);
  const owners = await database.transaction(async (tx) => {
    if (continuation === undefined) await recordAction(tx, 'user-deletions.replay', since.toISOString());
    return eraseUsers(tx, part);
  });
  return {
    replayed: part.length - owners.length,
    owners: owners.map(({ crmId, id, owned }) => ({ crmId, userId: id, owned })),
    eventsReachBackTo: published.reachBackTo,
    continuation: next,
  };
}

/**
 * Every call sorts the deletions in the same way, so parts neither overlap nor leave any out, although the parts before
 * have been published again.
 */
function takePart(
  deleted: Map<string, UserId>,
  continuation: string | undefined,
): { part: UserId[]; next: string | undefined } {
  const left = [...deleted.keys()].filter((key) => key > (continuation ?? '')).toSorted();
  const keys = left.slice(0, maxPerPart);
  return { part: keys.map((key) => deleted.get(key)!), next: keys.length < left.length ? keys.at(-1) : undefined };
}
