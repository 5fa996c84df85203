import { DomainError } from '@scheduling/errors';
import type { Kysely, Selectable, Transaction } from 'kysely';
import type { WebhookSchema, WebhookTable } from '../db/schema.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import type { Sealer } from './seal.ts';

export type WebhookRow = Selectable<WebhookTable>;

export interface WebhookKey {
  crmId: string;
  webhookReference: string;
}

/** A webhook as its CRM sees it (interface 6.4). */
export interface Webhook {
  reference: string;
  url: string;
  types: string[];
  providerReference: string | undefined;
  ignoreActors: string[];
  isEnabled: boolean;
  /**
   * The id of the last event that was delivered or left out; undefined if it is the beginning, or the event is no
   * longer kept.
   */
  after: string | undefined;
  failedAttempts: number;
  /** When the next event is sent again; undefined if it has not failed, or is being sent. */
  nextAttemptAt: Date | undefined;
  createdAt: Date;
}

/** Rejects with `webhook.not_found`. */
export async function requireWebhook(db: Kysely<WebhookSchema>, key: WebhookKey): Promise<WebhookRow> {
  return takeWebhook(selectWebhook(db, key));
}

/** The same, locked until the end of the transaction. */
export async function lockWebhook(tx: Transaction<WebhookSchema>, key: WebhookKey): Promise<WebhookRow> {
  return takeWebhook(selectWebhook(tx, key).forUpdate());
}

/** The webhook of a repeated call. Rejects with `webhook.not_found` if it was deleted since. */
export async function requireWebhookById(db: Kysely<WebhookSchema>, crmId: string, id: string): Promise<WebhookRow> {
  return takeWebhook(selectWebhooks(db, crmId).where('id', '=', id));
}

function selectWebhook(db: Kysely<WebhookSchema>, { crmId, webhookReference }: WebhookKey) {
  return selectWebhooks(db, crmId).where('reference', '=', webhookReference);
}

export function selectWebhooks(db: Kysely<WebhookSchema>, crmId: string) {
  return db.selectFrom('webhook').selectAll().where('crmId', '=', crmId);
}

async function takeWebhook(query: ReturnType<typeof selectWebhooks>): Promise<WebhookRow> {
  const row = await query.executeTakeFirst();
  if (row === undefined) throw new DomainError('webhook.not_found');
  return row;
}

/**
 * Rows of one CRM as it sees them. Rejects with `service.unavailable` if the reference of a provider is not known and
 * identity does not answer.
 */
export async function describeWebhooks(
  dependencies: WebhookDependencies,
  crmId: string,
  rows: WebhookRow[],
): Promise<Webhook[]> {
  const { kysely } = dependencies.database;
  const [positions, providers] = await Promise.all([
    rows.length === 0
      ? []
      : kysely
          .selectFrom('event')
          .select(['id', 'sequence'])
          .where('crmId', '=', crmId)
          .where(
            'sequence',
            'in',
            rows.map(({ position }) => position),
          )
          .execute(),
    dependencies.providers.findReferences(
      crmId,
      rows.flatMap(({ providerId }) => providerId ?? []),
    ),
  ]);
  const ids = new Map(positions.map(({ sequence, id }) => [sequence, id]));
  return rows.map((row) => ({
    reference: row.reference,
    url: row.url,
    types: row.types,
    providerReference: row.providerId === null ? undefined : providers.get(row.providerId),
    ignoreActors: row.ignoreActors,
    isEnabled: row.state !== 'disabled',
    after: ids.get(row.position),
    failedAttempts: row.failedAttempts,
    nextAttemptAt: row.state === 'pending' && row.failedAttempts > 0 && row.lease === null ? row.dueAt : undefined,
    createdAt: row.createdAt,
  }));
}

export async function describeWebhook(dependencies: WebhookDependencies, row: WebhookRow): Promise<Webhook> {
  const [webhook] = await describeWebhooks(dependencies, row.crmId, [row]);
  return webhook!;
}

/** Whose secret it is, for the sealer. */
export function secretContext({ crmId, id }: Pick<WebhookRow, 'crmId' | 'id'>): string {
  return `${crmId} ${id}`;
}

/** What the key of a request that has made a secret remembers: the ids of the webhook and of the secret. */
export function secretKept({ id, secretId }: WebhookRow): string[] {
  return [id, ...(secretId === null ? [] : [secretId])];
}

/** The secret, unless it is another one by now. */
export function openIfKept(sealer: Pick<Sealer, 'open'>, row: WebhookRow, secretId: string | null): string | undefined {
  return row.secretId === secretId ? sealer.open(row.secret, secretContext(row)) : undefined;
}
