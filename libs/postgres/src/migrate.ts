import { FatalError, type Logger } from '@scheduling/runtime';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'pg';
import { openHistory, recordMigration } from './migration-history.ts';
import type { MigrationSet } from './migration-set.ts';
import { retryBlocked } from './retry-blocked.ts';
import { describeBreaking, readSchemaState } from './schema-state.ts';

export interface MigrateOptions {
  url: string;
  sets: readonly MigrationSet[];
  logger: Logger;
  /** How long a migration is tried again while other sessions hold its locks. */
  patienceMs?: number;
}

/**
 * While a migration waits for the lock of a table, every later statement on that table waits behind it. So this is
 * shorter than the 2 s that a request has, and longer than the 1 s (`deadlock_timeout`) after which Postgres cancels an
 * autovacuum that holds the lock.
 */
const lockTimeoutMs = 1_200;
/** A Kubernetes Job of 10 minutes (`activeDeadlineSeconds`) has time for two runs that give up and say why. */
const defaultPatienceMs = 240_000;

/** The advisory lock of Kysely's Migrator, which earlier versions use: their runs and ours wait for each other. */
const migrationLock = '3853314791062309107';
const lockPollMs = 200;

/**
 * Brings a database up to date. Safe to run concurrently: the second run waits for the first. Migrations of a newer
 * version are left alone, so that this can run again after a rollback. The histories are those of Kysely's Migrator,
 * which is not used, because it holds the locks of all migrations until the last one has run.
 *
 * @throws FatalError if a newer version has run a breaking migration, or if a migration could not get its locks
 */
export async function migrateDatabase(options: MigrateOptions): Promise<void> {
  const { sets, logger } = options;
  const pool = new Pool({ connectionString: options.url, application_name: 'migration', max: 2, keepAlive: true });
  // Without listeners, losing a connection would end the process with less to say than the next statement's error.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    await kysely.connection().execute(async (db) => {
      await acquireMigrationLock(db, logger);
      const { breaking } = await readSchemaState(pool, sets);
      if (breaking.length > 0) throw new FatalError(describeBreaking(breaking));
      for (const set of sets) await migrateSet(db, set, options);
    });
  } finally {
    // The end of the session releases the lock.
    await kysely.destroy();
  }
}

/**
 * Asks repeatedly. A statement that waited would have a snapshot, and the other run's CREATE INDEX CONCURRENTLY would
 * wait for that: a deadlock.
 */
async function acquireMigrationLock(db: Kysely<unknown>, logger: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { rows } = await sql<{
      locked: boolean;
    }>`SELECT pg_try_advisory_lock(${sql.raw(migrationLock)}) AS locked`.execute(db);
    if (rows[0]?.locked === true) return;
    if (attempt === 1) logger.info('waiting for another run of the migrations');
    await delay(lockPollMs);
  }
}

async function migrateSet(
  db: Kysely<unknown>,
  set: MigrationSet,
  { logger, patienceMs = defaultPatienceMs }: MigrateOptions,
): Promise<void> {
  const pending = pendingMigrations(set, await openHistory(db, set.name));
  if (pending.length === 0) return;
  const steps = set.inOneTransaction === true ? [pending] : pending.map((name) => [name]);
  for (const names of steps) {
    await retryBlocked(() => runStep(db, set, names), {
      set: set.name,
      migration: names.join(', '),
      patienceMs,
      logger,
    });
    for (const migration of names) logger.info({ set: set.name, migration }, 'migrated');
  }
}

/**
 * In the order of their names. A new one comes after those that have run, so that the order is the same in every
 * database.
 */
function pendingMigrations({ name: set, migrations }: MigrationSet, executed: ReadonlySet<string>): string[] {
  const pending = Object.keys(migrations)
    .filter((name) => !executed.has(name))
    .toSorted();
  const last = [...executed].toSorted().at(-1) ?? '';
  const misnamed = pending.find((name) => name < last);
  if (misnamed !== undefined)
    throw new FatalError(`the name of ${set}/${misnamed} must come after ${last}, which has run`);
  return pending;
}

async function runStep(db: Kysely<unknown>, set: MigrationSet, names: readonly string[]): Promise<void> {
  const [first] = names;
  if (set.inOneTransaction !== true && set.migrations[first!]!.withoutTransaction === true)
    return runWithoutTransaction(db, set, first!);
  await db.transaction().execute(async (tx) => {
    await sql`SET LOCAL lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(tx);
    for (const name of names) {
      await set.migrations[name]!.up(tx);
      await recordMigration(tx, set, name);
    }
  });
}

async function runWithoutTransaction(db: Kysely<unknown>, set: MigrationSet, name: string): Promise<void> {
  await sql`SET lock_timeout = 0`.execute(db);
  await set.migrations[name]!.up(db);
  await db.transaction().execute((tx) => recordMigration(tx, set, name));
}
