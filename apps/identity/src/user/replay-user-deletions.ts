import type { ReplayUserDeletionsResponse } from '@scheduling/contracts/identity/v1';
import { type Broker, events, userReplayConsumer } from '@scheduling/events';
import type { IdentityDependencies } from '../dependencies.ts';
import { type Replay, replayDeletions } from '../replay-deletions.ts';
import { eraseUsers } from './delete-user.ts';

/**
 * Repeats the deletions of users, here and in the other services. Users who own something are not deleted, but returned.
 * Rejects with `broker.unavailable`.
 */
export async function replayUserDeletions(
  dependencies: IdentityDependencies,
  broker: Broker,
  replay: Replay,
): Promise<ReplayUserDeletionsResponse> {
  const { kept, ...part } = await replayDeletions(dependencies, broker, replay, {
    definition: events.userDeleted,
    consumer: userReplayConsumer,
    action: 'user-deletions.replay',
    idOf: ({ crmId, userId: id }) => ({ crmId, id }),
    repeat: eraseUsers,
  });
  return { ...part, owners: kept.map(({ crmId, id, owned }) => ({ crmId, userId: id, owned })) };
}
