import { type Logger, startLoop } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import type { Database } from './database.ts';

const everyMs = 1_000;
/** A session that stays idle after a commit reports its statistics after 10 s. */
const reportMs = 12_000;
/** The pause until the next commit. */
const quietMs = 60 * 60 * 1_000;
/** A table that has this many rows more than twice the planner's estimate is analysed. */
const slackRows = 50;

/**
 * Updates the planner's statistics of fast-growing tables. Cached plans of functions and foreign keys suit the size
 * that a table had when they were made: while it was almost empty, any index or none was equally good, and Postgres
 * keeps such a plan until the table is analysed. Autovacuum checks once a minute, which is too late for a first import.
 * So a table that has doubled is analysed here, a second or two after its growth is reported, and all sessions plan
 * again. Without commits, no queries are made.
 */
export function startGrowthAnalysis<Schema>({
  database,
  logger,
}: {
  database: Database<Schema>;
  logger: Logger;
}): AsyncDisposable {
  const db = database.kysely as unknown as Kysely<unknown>;
  let committedAt = Number.NEGATIVE_INFINITY;
  const isQuiet = (): boolean => performance.now() - committedAt > reportMs;
  const loop = startLoop({
    name: 'the analysis of growing tables',
    logger,
    everyMs: () => (isQuiet() ? quietMs : everyMs),
    run: async () => {
      if (isQuiet()) return 0;
      for (const table of await findGrownTables(db)) await sql`ANALYZE (SKIP_LOCKED) ${sql.table(table)}`.execute(db);
      return 0;
    },
  });
  database.onCommit(() => {
    const wasQuiet = isQuiet();
    committedAt = performance.now();
    if (wasQuiet) loop.wake();
  });
  return loop;
}

async function findGrownTables(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT pg_class.relname AS name
      FROM pg_stat_user_tables JOIN pg_class ON pg_class.oid = relid
     WHERE n_live_tup > ${slackRows}::int + 2 * greatest(reltuples, 0)`.execute(db);
  return rows.map(({ name }) => name);
}
