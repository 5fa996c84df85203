import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';

const everyMs = 10 * 60 * 1_000;
const batchSize = 1_000;

/**
 * Deletes the digests of mailboxes when the limit of verification mails no longer needs them, at startup and then every
 * 10 minutes. Safe with many replicas.
 */
export function startMailboxCleanUp({
  database,
  logger,
}: {
  database: Database<IdentitySchema>;
  logger: Logger;
}): AsyncDisposable {
  const run = (limit: number): Promise<number> => deleteExpired(database, limit);
  return startLoop({ name: 'the removal of counted mailboxes', logger, everyMs, batch: batchSize, run });
}

async function deleteExpired({ kysely }: Database<IdentitySchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM verification_mailbox WHERE (crm_id, address_digest) IN (
      SELECT crm_id, address_digest FROM verification_mailbox
       WHERE expires_at <= now()
       ORDER BY expires_at LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
