import { type Logger, startLoop } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import type { Database } from './database.ts';
import { type IdempotencySchema, keyLifetime } from './idempotency-schema.ts';

/** An expired key has no effect, whether or not its row still exists. */
const everyMs = 10 * 60 * 1_000;
const batchSize = 1_000;

/**
 * Deletes the rows of expired keys at the start and then every 10 minutes. Every replica may run this: they skip rows
 * locked by each other.
 */
export function startKeySweeper<Schema extends IdempotencySchema>(options: {
  database: Database<Schema>;
  logger: Logger;
}): AsyncDisposable {
  const { database, logger } = options;
  const run = (limit: number): Promise<number> => sweep(database.kysely as unknown as Kysely<IdempotencySchema>, limit);
  return startLoop({ name: 'the removal of old idempotency keys', logger, everyMs, batch: batchSize, run });
}

async function sweep(db: Kysely<IdempotencySchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM idempotency_key WHERE (crm_id, key_hash) IN (
      SELECT crm_id, key_hash FROM idempotency_key
       WHERE created_at <= now() - ${keyLifetime}::interval
       ORDER BY created_at LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(db);
  return Number(numAffectedRows);
}
