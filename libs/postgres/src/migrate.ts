import { FatalError, type Logger } from '@scheduling/runtime';
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'pg';
import { compareFunctions, openFunctionHistory, ownRelease, recordFunction } from './function-history.ts';
import { openHistory, recordMigration } from './migration-history.ts';
import { pendingMigrations, requireOrder } from './migration-order.ts';
import type { MigrationSet } from './migration-set.ts';
import { retryBlocked } from './retry-blocked.ts';
import { describeBreaking, readSchemaState } from './schema-state.ts';
import { isReadOnly, readOnly } from './server-watch.ts';

export interface MigrateOptions {
  url: string;
  sets: readonly MigrationSet[];
  logger: Logger;
  /** How long a migration is tried again while other sessions hold its locks. */
  patienceMs?: number;
  /** The version of the functions; by default that of this code. */
  release?: string;
}

/**
 * While a migration waits for the lock of a table, every later statement on that table waits behind it. So this is
 * shorter than the 2 s that a request has, and longer than the 1 s (`deadlock_timeout`) after which Postgres cancels an
 * autovacuum that holds the lock.
 */
const lockTimeoutMs = 1_200;
/** A Kubernetes Job of 10 minutes (`activeDeadlineSeconds`) has time for two runs that give up and say why. */
const defaultPatienceMs = 240_000;

/** Any number, but the same in every version: their runs wait for each other. */
const migrationLock = '3853314791062309107';
const lockPollMs = 200;

/**
 * Brings a database up to date. Safe to run concurrently: the second run waits for the first. Migrations and functions
 * of a newer version are left alone, so that this can run again after a rollback.
 *
 * @throws FatalError if a newer version has run a breaking migration, if the migrations are not in order, if one could
 *   not get its locks, or if nothing can be written to the database
 */
export async function migrateDatabase(options: MigrateOptions): Promise<void> {
  const { sets, logger } = options;
  requireOrder(sets);
  const pool = new Pool({ connectionString: options.url, application_name: 'migration', max: 2, keepAlive: true });
  // Without listeners, losing a connection would end the process with less to say than the next statement's error.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    if (await isReadOnly(pool)) throw new FatalError(readOnly);
    await kysely.connection().execute(async (db) => {
      await acquireMigrationLock(db, logger);
      const { breaking } = await readSchemaState(pool, sets);
      if (breaking.length > 0) throw new FatalError(describeBreaking(breaking));
      for (const set of sets) {
        await runMigrations(db, set, options);
        await runFunctions(db, set, options);
      }
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

async function runMigrations(
  db: Kysely<unknown>,
  set: MigrationSet,
  { logger, patienceMs = defaultPatienceMs }: MigrateOptions,
): Promise<void> {
  for (const name of pendingMigrations(set, await openHistory(db, set.name))) {
    await retryBlocked(() => runMigration(db, set, name), { set: set.name, migration: name, patienceMs, logger });
    logger.info({ set: set.name, migration: name }, 'migrated');
  }
}

async function runMigration(db: Kysely<unknown>, set: MigrationSet, name: string): Promise<void> {
  const { up, withoutTransaction } = set.migrations[name]!;
  if (withoutTransaction === true) {
    await sql`SET lock_timeout = 0`.execute(db);
    await up(db);
    return db.transaction().execute((tx) => recordMigration(tx, set, name));
  }
  await transactCarefully(db, async (tx) => {
    await up(tx);
    await recordMigration(tx, set, name);
  });
}

async function runFunctions(
  db: Kysely<unknown>,
  set: MigrationSet,
  { logger, patienceMs = defaultPatienceMs, release = ownRelease }: MigrateOptions,
): Promise<void> {
  const { pending, removed, newer } = compareFunctions(set, await openFunctionHistory(db), release);
  if (newer.length > 0) logger.warn({ set: set.name, functions: newer }, 'left the functions of a newer release alone');
  if (pending.length === 0 && removed.length === 0) return;
  const names = pending.map(({ name }) => name);
  const run = (): Promise<void> =>
    transactCarefully(db, async (tx) => {
      for (const file of pending) {
        await sql.raw(file.text).execute(tx);
        await recordFunction(tx, set.name, file, release);
      }
      for (const name of removed) await recordFunction(tx, set.name, { name, sha256: null }, release);
    });
  await retryBlocked(run, { set: set.name, migration: names.join(', '), patienceMs, logger });
  logger.info({ set: set.name, functions: names, removed }, 'replaced functions');
}

/** No statement waits long for a lock. */
async function transactCarefully(
  db: Kysely<unknown>,
  work: (tx: Transaction<unknown>) => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`SET LOCAL lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(tx);
    await work(tx);
  });
}
