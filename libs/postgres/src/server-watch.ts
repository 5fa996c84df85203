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
  /** Whether commits of the present server wait for a standby. */
  readonly isReplicated: boolean;
  /**
   * Examines a new connection, which shows to which server the address leads: the connections to any other are closed.
   *
   * @throws DomainError `database.unavailable` if nothing can be written there
   */
  admit(client: Client): Promise<void>;
  /**
   * Finds out to which server the address leads, by a connection of its own, and closes the connections to any other.
   * Resolves with the moment on the clock of `performance` at which it was begun, which can be earlier than the call.
   *
   * @throws DomainError `database.unavailable` if that is not found out, or is a server where nothing can be written
   */
  verify(): Promise<number>;
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
  isReplicated: boolean;
}

interface Queryable {
  query: (text: string) => Promise<{ rows: unknown[] }>;
}

/** For a connection beside the pool, and for its question. */
export const quickly: ClientConfig = { connectionTimeoutMillis: 1_000, query_timeout: 1_000 };

/** read_only_sql_transaction: on a standby, and where `default_transaction_read_only` is set. */
const readOnlyState = '25006';
export const readOnly = 'Postgres is read-only: is this a standby?';

export function createServerWatch({ config, logger }: ServerWatchOptions): ServerWatch {
  const servers = new Map<Client, string>();
  let present: (Server & { sinceMs: number }) | undefined;
  let verifying: Promise<number> | undefined;

  /** False if a connection that was begun later leads to another server. */
  function isPresent(server: Server, sinceMs: number): boolean {
    if (present !== undefined && server.id !== present.id && sinceMs < present.sinceMs) return false;
    present = { ...server, sinceMs };
    const stale = [...servers].filter(([, id]) => id !== server.id);
    if (stale.length === 0) return true;
    logger.warn({ connections: stale.length }, 'the database is on another server now, closing the old connections');
    for (const [client] of stale) disconnect(client, new ServerReplaced());
    return true;
  }

  async function verify(): Promise<number> {
    const sinceMs = performance.now();
    const server = await withOwnConnection({ ...config, ...quickly }, readServer).catch((error: unknown) => {
      throw new DomainError('database.unavailable', { cause: error });
    });
    // Who reaches a standby by mistake may still be connected to the primary.
    if (server.isReadOnly) throw readOnlyServer();
    isPresent(server, sinceMs);
    return sinceMs;
  }

  return {
    get isReplicated() {
      return present?.isReplicated === true;
    },
    admit: async (client) => {
      const server = await readServer(client);
      if (server.isReadOnly) {
        logger.warn(readOnly);
        throw readOnlyServer();
      }
      if (!isPresent(server, connectedSince(client))) throw new ServerReplaced();
      servers.set(client, server.id);
      client.once('end', () => servers.delete(client));
    },
    verify: () => {
      verifying ??= verify().finally(() => (verifying = undefined));
      return verifying;
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
  const { rows } = await client.query(`
    SELECT extract(epoch FROM pg_postmaster_start_time())::text AS id, current_setting('transaction_read_only')::boolean AS "isReadOnly",
           current_setting('synchronous_standby_names') <> '' AS "isReplicated"`);
  return rows[0] as Server;
}

/** At once, which rejects the statement in progress. The pool notices it, as when the server closes a connection. */
export function disconnect(client: ClientBase, reason: Error): void {
  const { connection } = client as unknown as { connection: { stream: { destroy: (error: Error) => void } } };
  connection.stream.destroy(reason);
}
