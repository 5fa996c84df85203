import { type Logger, startLoop } from '@scheduling/runtime';
import { type RawBuilder, sql } from 'kysely';
import pLimit from 'p-limit';
import type { Database } from './database.ts';

/** What a service removes by itself: rows that are too old, or whatever else a function removes. */
export type CleanUp<Schema> = OldRows<Schema> | Removal<Schema>;

/** Rows of a table that are deleted, oldest first, once a time in them has passed. */
type OldRows<Schema> = {
  [Table in keyof Schema & string]: {
    table: Table;
    column: keyof Schema[Table] & string;
    before: RawBuilder<Date>;
    /** Of these rows only. */
    where?: RawBuilder<boolean>;
    everyMs: number;
  };
}[keyof Schema & string];

interface Removal<Schema> {
  /** For log lines: `the removal of old events`. */
  name: string;
  /**
   * Removes at most `limit` rows, and returns how many: in one statement, or one short transaction, that other replicas
   * may run at the same time.
   */
  remove: (database: Database<Schema>, limit: number) => Promise<number>;
  everyMs: number;
  /** The maximum of one batch; 1,000 by default. */
  batch?: number;
}

const batchSize = 1_000;
/** Requests always find connections, and one slow batch does not keep the others waiting. */
const batchesAtOnce = 2;

/**
 * Does all of these, each in a loop of its own: at the start and then at intervals, in batches, without a pause while
 * batches are full. At most two batches run at the same time, and the loops take turns. Postgres cancels a statement
 * that takes longer than 5 s; the next batch is then half the size. Every replica may do it: they skip rows that are
 * locked by each other.
 */
export function startCleanUps<Schema>({
  database,
  logger,
  cleanUps,
}: {
  database: Database<Schema>;
  logger: Logger;
  cleanUps: readonly CleanUp<Schema>[];
}): AsyncDisposable {
  const inTurn = pLimit(batchesAtOnce);
  const loops = cleanUps.map((cleanUp) => {
    const isTable = 'table' in cleanUp;
    const name = isTable ? `the removal of old rows of ${cleanUp.table}` : cleanUp.name;
    const remove = (limit: number): Promise<number> =>
      isTable ? deleteOldRows(database, cleanUp, limit) : cleanUp.remove(database, limit);
    const run = (limit: number, signal: AbortSignal): Promise<number> =>
      inTurn(() => (signal.aborted ? 0 : remove(limit)));
    const batch = isTable ? batchSize : (cleanUp.batch ?? batchSize);
    return startLoop({ name, logger, everyMs: cleanUp.everyMs, batch, run });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(loops.map((loop) => loop[Symbol.asyncDispose]()));
    },
  };
}

/** The time that this interval ago was, by the database's clock: `ago('30 days')`. */
export function ago(interval: string): RawBuilder<Date> {
  return sql<Date>`now() - ${interval}::interval`;
}

async function deleteOldRows<Schema>(
  { kysely }: Database<Schema>,
  { table, column, before, where = sql<boolean>`true` }: OldRows<Schema>,
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM ${sql.table(table)} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${sql.table(table)}
       WHERE ${sql.ref(column)} < ${before} AND ${where}
       ORDER BY ${sql.ref(column)} LIMIT ${limit}
         FOR UPDATE SKIP LOCKED))`.execute(kysely);
  return Number(numAffectedRows);
}
