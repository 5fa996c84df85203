import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { WebhookSchema } from '../db/schema.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import { newSecret } from './sign.ts';
import { readSettings, type StoredSettings, type WebhookSettings } from './read-settings.ts';
import {
  describeWebhook,
  openIfKept,
  requireWebhookById,
  secretContext,
  secretKept,
  selectWebhooks,
  type Webhook,
  type WebhookRow,
} from './webhook.ts';

export interface NewWebhook extends WebhookSettings {
  crmId: string;
  reference: string;
  url: string;
}

interface CreatedWebhook {
  webhook: Webhook;
  /** Undefined for one that existed. */
  secret: string | undefined;
  created: boolean;
}

const maxWebhooks = 10;

/**
 * Creates a webhook, which is sent the events from now on, and returns its secret. For an existing one with this
 * reference and the same content nothing is changed, and the secret is not returned again; nor is it to a repetition of
 * the request after the secret was replaced. Rejects with `webhook.invalid`, `webhook.reference_taken`,
 * `webhook.limit_reached` or `provider.not_found`.
 */
export async function createWebhook(dependencies: WebhookDependencies, request: NewWebhook): Promise<CreatedWebhook> {
  const { crmId, reference } = request;
  const {
    url = request.url,
    types = [],
    providerId = null,
    ignoreActors = [],
  } = await readSettings(dependencies, crmId, request);
  const settings = { url, types, providerId, ignoreActors };
  const { row, created, secretId } = await transactOnce(dependencies.database, crmId, {
    work: (tx) => insertWebhook(tx, dependencies, { crmId, reference, settings }),
    keep: (result) => ({
      resourceIds: result.created ? secretKept(result.row) : [result.row.id],
      created: result.created,
    }),
    replay: async (tx, { resourceIds, created: wasCreated }) => ({
      row: await requireWebhookById(tx, crmId, resourceIds[0]!),
      created: wasCreated,
      secretId: resourceIds[1] ?? null,
    }),
  });
  const secret = created ? openIfKept(dependencies.sealer, row, secretId) : undefined;
  return { webhook: await describeWebhook(dependencies, row), secret, created };
}

interface InsertedWebhook {
  row: WebhookRow;
  created: boolean;
  /** Of the secret that the request has made. */
  secretId: string | null;
}

async function insertWebhook(
  tx: Transaction<WebhookSchema>,
  { sealer }: WebhookDependencies,
  { crmId, reference, settings }: { crmId: string; reference: string; settings: Required<StoredSettings> },
): Promise<InsertedWebhook> {
  // The number of webhooks is counted below.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`webhooks ${crmId}`}, 0))`.execute(tx);
  const existing = await selectWebhooks(tx, crmId).execute();
  const same = existing.find((row) => row.reference === reference);
  if (same !== undefined) {
    const { url, types, providerId, ignoreActors } = same;
    if (!isDeepStrictEqual({ url, types, providerId, ignoreActors }, settings))
      throw new DomainError('webhook.reference_taken');
    return { row: same, created: false, secretId: null };
  }
  if (existing.length >= maxWebhooks) throw new DomainError('webhook.limit_reached');
  // A delivery that decides that nothing is left locks this row.
  await tx
    .insertInto('eventCounter')
    .values({ crmId, lastSequence: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const [id, secretId] = [randomUUIDv7(), randomUUIDv7()];
  const secret = sealer.seal(newSecret(), secretContext({ crmId, id }));
  const row = await tx
    .insertInto('webhook')
    .values({
      crmId,
      id,
      reference,
      ...settings,
      secret,
      secretId,
      position: sql<number>`(SELECT last_sequence FROM event_counter WHERE crm_id = ${crmId})`,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { row, created: true, secretId };
}
