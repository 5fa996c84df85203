import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { deleteMails } from './delete-mails.ts';

export interface ProviderKey {
  crmId: string;
  providerId: string;
}

/** How many rows a transaction deletes. */
const batchSize = 500;

/** A call stops well before its event would be delivered again (`ackWaitMs` in consumer.ts). */
const maxMs = 8_000;

/**
 * Removes every mail of a deleted provider and what is known of its calendars, and prevents new mails from being stored.
 * A mail that is being sent is deleted when that is over, and so is the last mail to an erased customer, which ends within
 * minutes (record-outcome.ts). Returns whether nothing is left to delete; otherwise it is to be repeated.
 */
export async function eraseMailsOfProvider(
  database: Database<NotificationSchema>,
  key: ProviderKey,
  limitMs = maxMs,
): Promise<boolean> {
  const endMs = performance.now() + limitMs;
  await preventMails(database, key);
  for await (const _batch of deleteBatches(database, key)) if (performance.now() > endMs) return false;
  return true;
}

/** Yields after each batch. */
async function* deleteBatches(database: Database<NotificationSchema>, key: ProviderKey): AsyncGenerator<void> {
  for (const [table, column] of [
    ['unwrittenMail', 'id'],
    ['providerNotice', 'id'],
    ['eventOrganizer', 'participationId'],
  ] as const) {
    while ((await deleteRows(database, key, table, column)) > 0) yield;
  }
  let ids = await listMails(database, key);
  while (ids.length > 0) {
    await deleteMailsAndOrganizers(database, key.crmId, ids);
    yield;
    ids = await listMails(database, key, ids.at(-1));
  }
}

/** Deletes the rows of a batch, by the column that identifies them within the CRM, and returns how many. */
async function deleteRows(
  { kysely }: Database<NotificationSchema>,
  { crmId, providerId }: ProviderKey,
  table: keyof NotificationSchema,
  column: string,
): Promise<number> {
  const ofProvider = sql`crm_id = ${crmId} AND provider_id = ${providerId}`;
  const { numAffectedRows } = await sql`
    DELETE FROM ${sql.table(table)} WHERE ${ofProvider} AND ${sql.ref(column)} IN (
      SELECT ${sql.ref(column)} FROM ${sql.table(table)} WHERE ${ofProvider} LIMIT ${batchSize})`.execute(kysely);
  return Number(numAffectedRows);
}

/**
 * Whatever stores something of a provider takes the same lock (provider-is-erased.sql), so it is either stored in time to
 * be removed, or not at all.
 */
async function preventMails(database: Database<NotificationSchema>, { crmId, providerId }: ProviderKey): Promise<void> {
  await database.transaction(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`provider ${crmId} ${providerId}`}, 0))`.execute(tx);
    await tx
      .insertInto('erasedProvider')
      .values({ crmId, providerId })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  });
}

/** The next ones in the order of their ids. */
async function listMails(
  { kysely }: Database<NotificationSchema>,
  { crmId, providerId }: ProviderKey,
  after?: string,
): Promise<string[]> {
  const rows = await kysely
    .selectFrom('mail')
    .select('id')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .$if(after !== undefined, (query) => query.where('id', '>', after!))
    .orderBy('id')
    .limit(batchSize)
    .execute();
  return rows.map(({ id }) => id);
}

async function deleteMailsAndOrganizers(
  database: Database<NotificationSchema>,
  crmId: string,
  ids: string[],
): Promise<void> {
  await database.transaction(async (tx) => {
    const mails = tx.selectFrom('mail').where(sql<boolean>`id = ANY(${ids}::uuid[])`);
    // Those that an earlier version has stored do not name their provider.
    await tx
      .deleteFrom('eventOrganizer')
      .where('crmId', '=', crmId)
      .where('providerId', 'is', null)
      .where('participationId', 'in', mails.where('crmId', '=', crmId).select('aboutId'))
      .execute();
    await deleteMails(tx, crmId, mails);
    // An erasure waits for the last mails that are not sent yet.
    await tx
      .deleteFrom('mail')
      .where('crmId', '=', crmId)
      .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
      .where('erasureId', 'is not', null)
      .where('state', '<>', 'pending')
      .execute();
  });
}
