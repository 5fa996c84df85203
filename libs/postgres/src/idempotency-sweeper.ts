import type { Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { type IdempotencySchema, keyLifetime } from './idempotency-schema.ts';

/** An old key counts for nothing, whether or not its row is still there. */
const pauseMs = 10 * 60 * 1_000;
const batchSize = 1_000;

/** Removes the rows of old keys at once and then every 10 minutes. Every replica may run one: they skip what another has in hand. */
export function startKeySweeper<Schema extends IdempotencySchema>(options: { database: Database<Schema>; logger: Logger }): AsyncDisposable {
  const stopping = new AbortController();
  const running = sweepForever(options, stopping.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function sweepForever<Schema extends IdempotencySchema>(
  { database, logger }: { database: Database<Schema>; logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      if ((await sweep(database)) === batchSize) continue;
    } catch (error) {
      logger.warn({ err: error }, 'old idempotency keys could not be removed, trying again');
    }
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

async function sweep<Schema extends IdempotencySchema>({ kysely }: Database<Schema>): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM idempotency_key WHERE (crm_id, key_hash) IN (
      SELECT crm_id, key_hash FROM idempotency_key
       WHERE created_at <= now() - ${keyLifetime}
       ORDER BY created_at LIMIT ${batchSize}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
