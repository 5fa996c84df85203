import { retentionMs } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import type { MessagingSchema } from './schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;
/** Longer than a year, for a yearly review. */
const auditRetentionMs = 400 * 24 * 60 * 60 * 1_000;

/**
 * Deletes obsolete rows, at the start and then every hour: sent events are kept as long as the stream keeps them, like
 * the failures of events, and an inbox row must outlive every redelivery and refill. Every replica may run this: they
 * skip rows locked by each other.
 */
export function startCleanUp<Schema extends MessagingSchema>(options: {
  database: Database<Schema>;
  logger: Logger;
}): AsyncDisposable {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  return startLoop({
    name: 'the clean-up of the outbox, the inbox, the failures and the audit trail',
    logger: options.logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => {
      const deleted = [
        await deleteSentEvents(db, limit),
        await deleteProcessedEvents(db, limit),
        await deleteFailures(db, limit),
        await deleteAuditEntries(db, limit),
      ];
      return Math.max(...deleted);
    },
  });
}

async function deleteSentEvents(db: Kysely<MessagingSchema>, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('outbox')
    .where('id', 'in', (query) =>
      query
        .selectFrom('outbox')
        .select('id')
        .where('sentAt', '<', ago(retentionMs))
        .orderBy('sentAt')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

async function deleteProcessedEvents(db: Kysely<MessagingSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM inbox WHERE (consumer, event_id) IN (
      SELECT consumer, event_id FROM inbox WHERE processed_at < ${ago(2 * retentionMs)} ORDER BY processed_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)`.execute(
    db,
  );
  return Number(numAffectedRows);
}

async function deleteFailures(db: Kysely<MessagingSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM event_failure WHERE (consumer, event_id) IN (
      SELECT consumer, event_id FROM event_failure WHERE failed_at < ${ago(retentionMs)} ORDER BY failed_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)`.execute(
    db,
  );
  return Number(numAffectedRows);
}

async function deleteAuditEntries(db: Kysely<MessagingSchema>, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('auditEntry')
    .where('id', 'in', (query) =>
      query
        .selectFrom('auditEntry')
        .select('id')
        .where('recordedAt', '<', ago(auditRetentionMs))
        .orderBy('recordedAt')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function ago(ms: number) {
  return sql<Date>`now() - make_interval(secs => ${ms / 1_000})`;
}
