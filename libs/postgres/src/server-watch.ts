import { DomainError } from '@scheduling/errors';
import type { Logger } from '@scheduling/runtime';
import { type Client, type ClientBase, type ClientConfig, DatabaseError } from 'pg';
import { connectedSince } from './careful-client.ts';
import { withOwnConnection } from './own-connection.ts';

/**
 * Which server a database is on. After a failover the same address leads to another server, but connections stay where
 * they are: to one that is a standby now, or that does not know yet that it has been replaced.
 */
export interface ServerWatch {
  /**
   * Examines a new connection, which shows to which server the address leads: the connections to any other are closed.
   *
   * @throws DomainError `database.unavailable` if nothing can be written there
   */
  admit(client: Client): Promise<void>;
  /**
   * Finds out to which server the address leads, by a connection of its own, when a statement takes long. Then the
   * connections to any other are closed.
   */
  verify(): void;
}

export interface ServerWatchOptions {
  /** How to connect to the database. */
  config: ClientConfig;
  logger: Logger;
}

interface Server {
  /** When it was started, which differs between any two servers. */
  id: string;
  isReadOnly: boolean;
}

interface Queryable {
  query: (text: string) => Promise<{ rows: unknown[] }>;
}

/** For a connection beside the pool, and for its question. */
const quickly: ClientConfig = { connectionTimeoutMillis: 1_000, query_timeout: 1_000 };

/** read_only_sql_transaction: on a standby, and where `default_transaction_read_only` is set. */
const readOnlyState = '25006';
export const readOnly = 'Postgres is read-only: is this a standby?';

export function createServerWatch({ config, logger }: ServerWatchOptions): ServerWatch {
  const servers = new Map<Client, string>();
  let present: { id: string; sinceMs: number } | undefined;
  let verifying: Promise<void> | undefined;

  /** False if a connection that was begun later leads to another server. */
  function isPresent(id: string, sinceMs: number): boolean {
    if (present !== undefined && id !== present.id && sinceMs < present.sinceMs) return false;
    present = { id, sinceMs };
    const stale = [...servers].filter(([, server]) => server !== id);
    if (stale.length === 0) return true;
    logger.warn({ connections: stale.length }, 'the database is on another server now, closing the old connections');
    for (const [client] of stale) disconnect(client, new ServerReplaced());
    return true;
  }

  async function verify(): Promise<void> {
    const sinceMs = performance.now();
    const { id, isReadOnly } = await withOwnConnection({ ...config, ...quickly }, readServer);
    // Who reaches a standby by mistake may still be connected to the primary.
    if (!isReadOnly) isPresent(id, sinceMs);
  }

  return {
    admit: async (client) => {
      const { id, isReadOnly } = await readServer(client);
      if (isReadOnly) {
        logger.warn(readOnly);
        throw readOnlyServer();
      }
      if (!isPresent(id, connectedSince(client))) throw new ServerReplaced();
      servers.set(client, id);
      client.once('end', () => servers.delete(client));
    },
    // If it is not known, the connections may be as good as any.
    verify: () => {
      verifying ??= verify()
        .catch(() => undefined)
        .finally(() => (verifying = undefined));
    },
  };
}

/** Rejects with `database.unavailable` if nothing can be written to a database; asks by a connection of its own. */
export async function requireWritableServer(config: ClientConfig): Promise<void> {
  await withOwnConnection({ ...config, ...quickly }, requireWritable);
}

/** Rejects with `database.unavailable` if nothing can be written with this connection. */
export async function requireWritable(client: Queryable): Promise<void> {
  if (await isReadOnly(client)) throw readOnlyServer();
}

/** Whether nothing can be written with this connection. */
export async function isReadOnly(client: Queryable): Promise<boolean> {
  return (await readServer(client)).isReadOnly;
}

/** Whether a statement was rejected because its server only reads. */
export function isReadOnlyError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.code === readOnlyState;
}

/** With the reason in the log: to clients it is the same as a database that does not answer. */
export function readOnlyServer(cause?: DatabaseError): DomainError {
  return new DomainError('database.unavailable', { cause: new Error(readOnly, { cause }) });
}

/** The server to which the connection led is no longer the one of the database. */
export class ServerReplaced extends Error {
  override readonly name = 'ServerReplaced';

  constructor() {
    super('the database is on another server now');
  }
}

async function readServer(client: Queryable): Promise<Server> {
  const { rows } = await client.query(
    `SELECT extract(epoch FROM pg_postmaster_start_time())::text AS id, current_setting('transaction_read_only')::boolean AS "isReadOnly"`,
  );
  return rows[0] as Server;
}

/** At once, which rejects the statement in progress. The pool notices it, as when the server closes a connection. */
export function disconnect(client: ClientBase, reason: Error): void {
  const { connection } = client as unknown as { connection: { stream: { destroy: (error: Error) => void } } };
  connection.stream.destroy(reason);
}
