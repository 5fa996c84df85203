import { DomainError } from '@scheduling/errors';
import { type Logger, type Metrics, within } from '@scheduling/runtime';
import { CamelCasePlugin, Kysely, type Transaction } from 'kysely';
import { type Client, type ClientBase, Pool, type PoolConfig, types } from 'pg';
import { requireAwaited } from './awaited.ts';
import { readClock } from './call-deadline.ts';
import { useFunctionCaller } from './call-function.ts';
import { createCarefulClients } from './careful-client.ts';
import { type CommitWatch, createCommitWatch } from './commit-watch.ts';
import { createFunctionCaller } from './function-caller.ts';
import type { MigrationSet } from './migration-set.ts';
import { measurePool } from './pool-metrics.ts';
import { useReadPool } from './read-function.ts';
import { createSchemaGate, type SchemaGate, SchemaOutdated } from './schema-gate.ts';
import { createServerWatch, disconnect, requireWritable, requireWritableServer } from './server-watch.ts';
import { createSingleCommit, type SingleCommit } from './single-commit.ts';
import { TracedDialect } from './traced-dialect.ts';
import { watchStatements } from './watch-statements.ts';

export interface DatabaseOptions {
  url: string;
  /** Application name in pg_stat_activity. */
  applicationName: string;
  logger: Logger;
  maxConnections?: number;
  /** How long a caller waits for a connection, in milliseconds; 1,500 by default. */
  timeoutMs?: number;
  /**
   * The migrations that the code needs: no connection is used before they have run, and a newer one that breaks this
   * code ends the process.
   */
  migrations?: readonly MigrationSet[];
  /** Where the connections, and the time spent waiting for them, are measured. */
  metrics?: Metrics;
}

/** The most connections of a process to its database, unless it asks for another number. */
export const maxConnections = 10;

/** One service's own database. */
export interface Database<Schema> extends AsyncDisposable {
  /**
   * For reads, and for writes in a single statement. Tables and columns are in camelCase, except in the text of raw
   * SQL.
   */
  kysely: Kysely<Schema>;
  /** For uses that need a dedicated session, such as an advisory lock. */
  pool: Pool;
  /**
   * Runs the work in one READ COMMITTED transaction, and notifies the commit listeners. The work must not make network
   * calls. If the caller of the current request no longer waits at the end of it, the transaction is rolled back, and
   * this rejects with `database.unavailable`.
   */
  transaction<Result>(work: (tx: Transaction<Schema>) => Promise<Result>): Promise<Result>;
  /** Notifies the commit listeners of a write outside {@link transaction}. */
  committed(): void;
  /** Called after each commit; the relay uses it to publish at once. */
  onCommit(listener: () => void): void;
  /**
   * Rejects with `database.unavailable` unless the connections lead to the server on which the database was a quarter of
   * a second ago, or later: one that has been replaced may go on answering. Without synchronous replication that is not
   * noticed.
   */
  requireCurrent(): Promise<void>;
  /** Rejects if the database does not answer, or is read-only. */
  ping(): Promise<void>;
  /** Rejects if the database answers, but its schema is older than the code. */
  checkSchema(): Promise<void>;
}

/** How long Postgres may work on a statement. */
const statementMs = 5_000;
/** How long a connection is used. Whatever else is not noticed of a server that has been replaced ends with it. */
const lifetimeSeconds = 60;
/** Then it counts as a failure that a probe has not been answered, and another one can be made. */
const probeMs = 5_000;
/** After how long without traffic either side asks whether the other is still there. */
const keepAliveMs = 10_000;

/**
 * int8 (counts, sequence numbers) is returned as a number; a value that a number cannot represent is an error, never
 * rounded.
 */
types.setTypeParser(types.builtins.INT8, (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 ${text} does not fit a number`);
  return value;
});

/** A date is text, YYYY-MM-DD: it is a moment only in a time zone. */
types.setTypeParser(types.builtins.DATE, (text) => text);

/** Opens a pool. It connects on first use, so a database that is down does not stop the process from starting. */
export function createDatabase<Schema>(options: DatabaseOptions): Database<Schema> {
  const { pool, gate, commit, commits } = openPool(options);
  const measured = options.metrics ? measurePool(pool, options.metrics) : pool;
  const namespace = URL.parse(options.url)?.pathname.slice(1) ?? '';
  const kysely = new Kysely<Schema>({
    dialect: new TracedDialect(measured, namespace),
    // The keys inside a jsonb value are data.
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  });
  useFunctionCaller(kysely, createFunctionCaller(measured, namespace, commits));
  useReadPool(kysely, measured, namespace);
  let probing: Promise<void> | undefined;
  // One at a time: a hanging server must not tie up a connection per caller.
  const probe = (): Promise<void> => (probing ??= within(reach(pool), probeMs).finally(() => (probing = undefined)));
  const listeners: (() => void)[] = [];
  const committed = (): void => {
    for (const listener of listeners) listener();
  };
  return {
    kysely,
    pool,
    transaction: async (work) => {
      commits.requireCommits();
      const callbacks: (() => void)[] = [];
      const result = await kysely
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (tx) => {
          afterCommitCallbacks.set(tx, callbacks);
          const done = await work(tx);
          requireAwaited();
          return done;
        });
      for (const callback of callbacks) callback();
      committed();
      return result;
    },
    committed,
    onCommit: (listener) => {
      listeners.push(listener);
    },
    requireCurrent: commits.requireCurrent,
    ping: () =>
      probe().catch((error: unknown) => {
        if (!(error instanceof SchemaOutdated)) throw error;
      }),
    checkSchema: async () => {
      if (gate?.isOpen !== false) return;
      await probe().catch((error: unknown) => {
        if (error instanceof SchemaOutdated) throw error;
      });
    },
    [Symbol.asyncDispose]: async () => {
      await commit[Symbol.asyncDispose]();
      await kysely.destroy();
    },
  };
}

interface OpenPool {
  pool: Pool;
  gate: SchemaGate | undefined;
  commit: SingleCommit;
  commits: CommitWatch;
}

function openPool({
  url,
  applicationName,
  maxConnections: max = maxConnections,
  timeoutMs = 1_500,
  migrations,
  logger,
}: DatabaseOptions): OpenPool {
  const clients = createCarefulClients(max);
  const gate = migrations && createSchemaGate(migrations, logger);
  const config: PoolConfig = {
    Client: clients.Client,
    connectionString: url,
    application_name: applicationName,
    max,
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: lifetimeSeconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    // A leader whose machine is gone without a word loses its lock within half a minute; by default, after two hours.
    options: `-c tcp_keepalives_idle=${keepAliveMs / 1_000} -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3`,
    lock_timeout: 2_000,
    statement_timeout: statementMs,
    query_timeout: statementMs + 1_500,
    idle_in_transaction_session_timeout: 10_000,
  };
  const server = createServerWatch({ config, logger });
  const admit = async (client: ClientBase): Promise<void> => {
    client.on('error', () => undefined);
    // If it is not found out, the connections may be as good as any.
    watchStatements(client as Client, () => void server.verify().catch(() => undefined));
    try {
      await server.admit(client as Client);
      await gate?.examine(client);
      await readClock(client);
    } catch (error) {
      // The pool would wait for the server to close the connection before it tells the caller.
      disconnect(client, error as Error);
      // What keeps this connection from being used keeps others from it, too.
      if (error instanceof DomainError) clients.refused(error);
      throw error;
    }
  };
  // The pool waits for it, which its type does not say. With its `verify`, it would never get back a connection whose
  // caller has given up meanwhile.
  const admitting = { ...config, onConnect: admit };
  const pool = new Pool(admitting);
  // Without a listener, losing a connection, as when Postgres restarts, would end the process.
  pool.on('error', (error) => logger.warn({ err: error }, 'lost an idle database connection'));
  const commit = createSingleCommit(admitting);
  return { pool, gate, commit, commits: createCommitWatch({ commit, server, logger }) };
}

const afterCommitCallbacks = new WeakMap<object, (() => void)[]>();

/**
 * Calls back once the {@link Database.transaction} has committed, and never if it is rolled back; immediately for a
 * statement outside a transaction.
 */
export function afterCommit<Schema>(db: Kysely<Schema>, callback: () => void): void {
  const callbacks = afterCommitCallbacks.get(db);
  if (callbacks) callbacks.push(callback);
  else callback();
}

/** While all connections are in use, it asks by one of its own, and does not wait for its turn. */
async function reach(pool: Pool): Promise<void> {
  if (pool.idleCount === 0 && pool.totalCount >= pool.options.max) return requireWritableServer(pool.options);
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await requireWritable(client);
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}
