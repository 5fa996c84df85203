import type { ReplayProviderDeletionsResponse } from '@scheduling/contracts/identity/v1';
import { type Broker, events, providerReplayConsumer } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { sql, type Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { type DeletedId, type Replay, replayDeletions } from '../replay-deletions.ts';
import type { ProviderRow } from './provider.ts';

/**
 * Repeats the deletions of providers in the other services. Providers that a restore of this database has brought back
 * stay, because something may refer to them again (ADR 43), and are returned. Rejects with `broker.unavailable`.
 */
export async function replayProviderDeletions(
  dependencies: IdentityDependencies,
  broker: Broker,
  replay: Replay,
): Promise<ReplayProviderDeletionsResponse> {
  const { kept, ...part } = await replayDeletions(dependencies, broker, replay, {
    definition: events.providerDeleted,
    consumer: providerReplayConsumer,
    action: 'provider-deletions.replay',
    idOf: ({ crmId, providerId: id }) => ({ crmId, id }),
    repeat: publishAgain,
  });
  return { ...part, existing: kept.map(({ crmId, id, reference }) => ({ crmId, providerId: id, reference })) };
}

type ExistingProvider = Pick<ProviderRow, 'crmId' | 'id' | 'reference'>;

/** Nothing to lock: an id is not used a second time, so a provider that does not exist is not created meanwhile. */
async function publishAgain(tx: Transaction<IdentitySchema>, deleted: DeletedId[]): Promise<ExistingProvider[]> {
  const { rows: existing } = await sql<ExistingProvider>`
    SELECT crm_id, id, reference
      FROM provider JOIN unnest(${deleted.map(({ crmId }) => crmId)}::text[], ${deleted.map(({ id }) => id)}::uuid[]) AS listed (crm_id, id) USING (crm_id, id)
     ORDER BY crm_id, reference`.execute(tx);
  const exists = new Set(existing.map(({ id }) => id));
  const gone = deleted.filter(({ id }) => !exists.has(id));
  await appendEvent(tx, events.providerDeleted, ...gone.map(({ crmId, id }) => ({ crmId, providerId: id })));
  return existing;
}
