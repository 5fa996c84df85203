import type { ReplayKeyRevocationsResponse } from '@scheduling/contracts/identity/v1';
import { type Broker, events, readPublished, revocationReplayConsumer } from '@scheduling/events';
import { recordAction } from '@scheduling/messaging';
import type { IdentityDependencies } from '../dependencies.ts';
import { revokeKeys } from './revoke-key.ts';

/**
 * Revokes every key again that was revoked since a backup was made, after the database was restored from it. The
 * revocations are known from the events in NATS, which are kept for 7 days. Rejects with `broker.unavailable`.
 */
export async function replayKeyRevocations(
  { database }: IdentityDependencies,
  broker: Broker,
  since: Date,
): Promise<ReplayKeyRevocationsResponse> {
  const published = await readPublished(broker, revocationReplayConsumer, events.apiKeyRevoked, since);
  const hashes = published.events.map(({ keyHash }) => Buffer.from(keyHash));
  return database.transaction(async (tx) => {
    const revoked = hashes.length === 0 ? [] : await revokeKeys(tx, (key) => key('keyHash', 'in', hashes));
    await recordAction(tx, 'key-revocations.replay', since.toISOString(), ...revoked.map(({ prefix }) => prefix));
    return { revoked, eventsReachBackTo: published.reachBackTo };
  });
}
