import { isRecorded } from '@scheduling/runtime';
import {
  type AbortableOperationOptions,
  type DatabaseConnection,
  type Driver,
  PostgresDialect,
  PostgresDriver,
  type PostgresPool,
} from 'kysely';
import { describeStatement, inStatementSpan, noteSent } from './statement-span.ts';

/** Kysely's dialect, whose statements have spans if they run on behalf of a recorded trace. */
export class TracedDialect extends PostgresDialect {
  readonly #pool: PostgresPool;
  readonly #namespace: string;

  /** @param namespace the name of the database */
  constructor(pool: PostgresPool, namespace: string) {
    super({ pool });
    this.#pool = pool;
    this.#namespace = namespace;
  }

  override createDriver(): Driver {
    return new TracedDriver(this.#pool, this.#namespace);
  }
}

class TracedDriver extends PostgresDriver {
  /** When connections in use were requested, on the clock of `performance`; until their first statement. */
  readonly #requestedMs: WeakMap<DatabaseConnection, number>;

  constructor(pool: PostgresPool, namespace: string) {
    const requestedMs = new WeakMap<DatabaseConnection, number>();
    super({ pool, onCreateConnection: async (connection) => traceStatements(connection, namespace, requestedMs) });
    this.#requestedMs = requestedMs;
  }

  override acquireConnection(options?: AbortableOperationOptions): Promise<DatabaseConnection> {
    return isRecorded() ? this.#acquireTimed(options) : super.acquireConnection(options);
  }

  async #acquireTimed(options: AbortableOperationOptions | undefined): Promise<DatabaseConnection> {
    const nowMs = performance.now();
    const connection = await super.acquireConnection(options);
    this.#requestedMs.set(connection, nowMs);
    return connection;
  }

  override releaseConnection(connection: DatabaseConnection): Promise<void> {
    this.#requestedMs.delete(connection);
    return super.releaseConnection(connection as Parameters<PostgresDriver['releaseConnection']>[0]);
  }
}

/** Kysely has no hook around a statement, and changes its connections in the same way to log them. */
function traceStatements(
  connection: DatabaseConnection,
  namespace: string,
  requestedMs: WeakMap<DatabaseConnection, number>,
): void {
  const execute: DatabaseConnection['executeQuery'] = connection.executeQuery.bind(connection);
  connection.executeQuery = (query, options) => {
    if (!isRecorded()) return execute(query, options);
    const startedMs = requestedMs.get(connection);
    requestedMs.delete(connection);
    return inStatementSpan({ ...describeStatement(namespace, query.sql), startedMs }, (span) => {
      noteSent([{ span }]);
      return execute(query, options);
    });
  };
}
