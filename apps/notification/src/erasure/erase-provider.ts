import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { deleteMails } from './delete-mails.ts';

export interface ProviderKey {
  crmId: string;
  providerId: string;
}

/** How many mails are deleted in a transaction at most. */
const batchSize = 500;

/**
 * Removes every mail of a deleted provider and what is known of its calendars, and prevents new mails from being stored.
 * A mail that is being sent is deleted when that is over, and so is the last mail to an erased customer, which ends within
 * minutes (record-outcome.ts). Repeating it changes nothing.
 */
export async function eraseMailsOfProvider(database: Database<NotificationSchema>, key: ProviderKey): Promise<void> {
  const { crmId, providerId } = key;
  await preventMails(database, key);
  for (const table of ['unwrittenMail', 'providerNotice'] as const)
    await database.kysely.deleteFrom(table).where('crmId', '=', crmId).where('providerId', '=', providerId).execute();
  let ids = await listMails(database, key);
  while (ids.length > 0) {
    await deleteBatch(database, crmId, ids);
    ids = await listMails(database, key, ids.at(-1));
  }
  await database.kysely
    .deleteFrom('eventOrganizer')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .execute();
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

async function deleteBatch(database: Database<NotificationSchema>, crmId: string, ids: string[]): Promise<void> {
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
