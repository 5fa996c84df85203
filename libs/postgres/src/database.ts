import type { Logger, Metrics } from '@scheduling/runtime';
import { CamelCasePlugin, Kysely, PostgresDialect, type Transaction } from 'kysely';
import { Pool, types } from 'pg';
import type { MigrationSet } from './migration-set.ts';
import { measurePool } from './pool-metrics.ts';
import { createSchemaGate, SchemaOutdated } from './schema-gate.ts';

export interface DatabaseOptions {
  url: string;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  logger: Logger;
  maxConnections?: number;
  /** Those that the code needs: no connection is used before they have run, and a newer one that breaks this code ends the process. */
  migrations?: readonly MigrationSet[];
  /** Where the connections and the waiting for them are counted. */
  metrics?: Metrics;
}

/** One service's own database. */
export interface Database<Schema> extends AsyncDisposable {
  /** For reads, and for writes that are one statement. Tables and columns are in camelCase, except in the text of raw SQL. */
  kysely: Kysely<Schema>;
  /** For what needs a session of its own, such as an advisory lock. */
  pool: Pool;
  /** Runs the work in one READ COMMITTED transaction, and tells the commit listeners. No network call belongs in it. */
  transaction<Result>(work: (tx: Transaction<Schema>) => Promise<Result>): Promise<Result>;
  /** Tells the commit listeners of a write outside of {@link transaction}. */
  committed(): void;
  /** Called after each commit; the relay uses it to publish at once. */
  onCommit(listener: () => void): void;
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  /** Rejects while the database answers, but its schema is older than the code. */
  checkSchema(): Promise<void>;
}

/** int8 (counts, sequence numbers) arrives as a number; one that a number cannot hold is an error, never rounded. */
types.setTypeParser(types.builtins.INT8, (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 ${text} does not fit a number`);
  return value;
});

/** Opens a pool. It connects on first use, so a database that is down does not stop the process from starting. */
export function createDatabase<Schema>(options: DatabaseOptions): Database<Schema> {
  const pool = new Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: 1_500,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    lock_timeout: 2_000,
    statement_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    ...(options.migrations && { verify: createSchemaGate(options.migrations, options.logger).verify }),
  });
  // Without a listener the loss of an idle connection, as in a restart of Postgres, would end the process.
  pool.on('error', (error) => options.logger.warn({ err: error }, 'lost an idle database connection'));

  const kysely = new Kysely<Schema>({
    dialect: new PostgresDialect({ pool: options.metrics ? measurePool(pool, options.metrics) : pool }),
    // The keys inside a jsonb value are data.
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  });
  let probing: Promise<void> | undefined;
  // One at a time: a server that hangs must not be given a connection for everybody who asks.
  const probe = (): Promise<void> => (probing ??= selectOne(pool).finally(() => (probing = undefined)));
  const listeners: (() => void)[] = [];
  const committed = (): void => {
    for (const listener of listeners) listener();
  };
  return {
    kysely,
    pool,
    transaction: async (work) => {
      const callbacks: (() => void)[] = [];
      const result = await kysely
        .transaction()
        .setIsolationLevel('read committed')
        .execute((tx) => {
          afterCommitCallbacks.set(tx, callbacks);
          return work(tx);
        });
      for (const callback of callbacks) callback();
      committed();
      return result;
    },
    committed,
    onCommit: (listener) => {
      listeners.push(listener);
    },
    ping: () =>
      probe().catch((error: unknown) => {
        if (!(error instanceof SchemaOutdated)) throw error;
      }),
    checkSchema: () =>
      probe().catch((error: unknown) => {
        if (error instanceof SchemaOutdated) throw error;
      }),
    [Symbol.asyncDispose]: () => kysely.destroy(),
  };
}

const afterCommitCallbacks = new WeakMap<object, (() => void)[]>();

/** Calls back once the {@link Database.transaction} has committed, and never when it is rolled back; at once for a statement outside of one. */
export function afterCommit<Schema>(db: Kysely<Schema>, callback: () => void): void {
  const callbacks = afterCommitCallbacks.get(db);
  if (callbacks) callbacks.push(callback);
  else callback();
}

async function selectOne(pool: Pool): Promise<void> {
  await pool.query('SELECT 1');
}
