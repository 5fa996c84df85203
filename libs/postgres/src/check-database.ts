import { setTimeout as delay } from 'node:timers/promises';
import { type Client, DatabaseError, type QueryResultRow } from 'pg';
import { commitNothing } from './commit-nothing.ts';
import { inspection, withOwnConnection } from './own-connection.ts';
import { isReadOnly, readOnly } from './server-watch.ts';
import { isUnanswered } from './watch-statements.ts';

/** What keeps a database from being written to, and its copies from being complete. */
export interface DatabaseCheck {
  /** Why nothing could be committed; empty if it could. */
  refusal: string;
  /** The server only reads. */
  readOnly: boolean;
  /** The commit did not finish in time. */
  unfinished: boolean;
  /** Sessions that wait for a synchronous standby. */
  waitingForStandby: number;
  /** Tables to which nothing can be written, and who holds the lock; 0 is a prepared transaction. */
  lockedTables: { table: string; pid: number }[];
  /** Those for whom sessions have been waiting for more than a second. */
  blockingSessions: { pid: number; blocked: number; seconds: number }[];
  /** Undefined if the write-ahead log is not archived. */
  archive: { failing: boolean; secondsSinceSuccess: number | undefined } | undefined;
  synchronousStandbyNames: string;
  standbys: number;
  /** Undefined if there is no standby, or the role may not see it. */
  replayLagSeconds: number | undefined;
  /** Replication slots that no client uses, and how much of the write-ahead log is kept for each. */
  idleSlots: { name: string; keptBytes: number }[];
  connections: number;
  maxConnections: number;
  /** When the server was started, by which databases of the same server are recognized. */
  startedAt: Date;
}

const commitMs = 500;
/** A migration may hold a lock for a moment. */
const lockedForMs = 200;

/**
 * Looks at a database over a connection of its own, and commits something that leaves nothing behind. Rejects if the
 * database does not answer.
 */
export function checkDatabase(url: string): Promise<DatabaseCheck> {
  return withOwnConnection(inspection(url), async (client) => {
    const nothing = { unfinished: false, lockedTables: [] };
    const writes = (await isReadOnly(client))
      ? { ...nothing, readOnly: true, refusal: readOnly }
      : { readOnly: false, lockedTables: await findLockedTables(client), ...(await commit(url)) };
    return {
      ...writes,
      ...(await readWaiting(client)),
      ...(await readServer(client)),
      idleSlots: await findIdleSlots(client),
    };
  });
}

/** With another connection, because it may not finish. */
async function commit(url: string): Promise<Pick<DatabaseCheck, 'refusal' | 'unfinished'>> {
  try {
    await withOwnConnection(inspection(url, commitMs), commitNothing);
    return { refusal: '', unfinished: false };
  } catch (error) {
    if (isUnanswered(error)) return { refusal: `a commit did not finish within ${commitMs} ms`, unfinished: true };
    if (error instanceof DatabaseError) return { refusal: error.message, unfinished: false };
    throw error;
  }
}

/** Those that are locked twice in succession by the same session. */
async function findLockedTables(client: Client): Promise<DatabaseCheck['lockedTables']> {
  const read = async (): Promise<DatabaseCheck['lockedTables']> => {
    const { rows } = await client.query<{ table: string; pid: number }>(`
      SELECT DISTINCT relname AS table, coalesce(pid, 0) AS pid
        FROM pg_locks JOIN pg_class ON pg_class.oid = relation
       WHERE granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND relkind IN ('r', 'p')
         AND relnamespace = ANY (current_schemas(false)::regnamespace[])
         AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
       ORDER BY 1, 2`);
    return rows;
  };
  const before = await read();
  if (before.length === 0) return [];
  await delay(lockedForMs);
  return (await read()).filter(({ table, pid }) => before.some((each) => each.table === table && each.pid === pid));
}

async function readWaiting(client: Client): Promise<Pick<DatabaseCheck, 'waitingForStandby' | 'blockingSessions'>> {
  const { waitingForStandby } = await readRow<{ waitingForStandby: number }>(
    client,
    `SELECT count(*)::int AS "waitingForStandby" FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()`,
  );
  const { rows } = await client.query<DatabaseCheck['blockingSessions'][number]>(`
    SELECT blocking AS pid, count(*)::int AS blocked, max(extract(epoch FROM clock_timestamp() - query_start))::float8 AS seconds
      FROM pg_stat_activity CROSS JOIN LATERAL unnest(pg_blocking_pids(pid)) AS blocking
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '1 second'
     GROUP BY blocking ORDER BY blocked DESC LIMIT 5`);
  return { waitingForStandby, blockingSessions: rows };
}

type ServerState = Pick<
  DatabaseCheck,
  | 'archive'
  | 'synchronousStandbyNames'
  | 'standbys'
  | 'replayLagSeconds'
  | 'connections'
  | 'maxConnections'
  | 'startedAt'
>;

async function readServer(client: Client): Promise<ServerState> {
  const { archives, failing, secondsSinceSuccess, replayLagSeconds, ...rest } = await readRow<{
    archives: boolean;
    failing: boolean;
    secondsSinceSuccess: number | null;
    synchronousStandbyNames: string;
    standbys: number;
    replayLagSeconds: number | null;
    connections: number;
    maxConnections: number;
    startedAt: Date;
  }>(
    client,
    `SELECT current_setting('archive_mode') <> 'off' AS archives,
            coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS failing,
            extract(epoch FROM clock_timestamp() - last_archived_time)::float8 AS "secondsSinceSuccess",
            current_setting('synchronous_standby_names') AS "synchronousStandbyNames",
            (SELECT count(*)::int FROM pg_stat_replication) AS standbys,
            (SELECT max(extract(epoch FROM replay_lag))::float8 FROM pg_stat_replication) AS "replayLagSeconds",
            (SELECT sum(numbackends)::int FROM pg_stat_database) AS connections,
            current_setting('max_connections')::int AS "maxConnections",
            pg_postmaster_start_time() AS "startedAt"
       FROM pg_stat_archiver`,
  );
  return {
    ...rest,
    archive: archives ? { failing, secondsSinceSuccess: secondsSinceSuccess ?? undefined } : undefined,
    replayLagSeconds: replayLagSeconds ?? undefined,
  };
}

async function findIdleSlots(client: Client): Promise<DatabaseCheck['idleSlots']> {
  const { rows } = await client.query<DatabaseCheck['idleSlots'][number]>(`
    SELECT slot_name AS name, greatest(pg_wal_lsn_diff(position, restart_lsn), 0)::int8 AS "keptBytes"
      FROM pg_replication_slots, (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) AS log (position)
     WHERE NOT active AND restart_lsn IS NOT NULL AND NOT temporary
     ORDER BY 2 DESC LIMIT 5`);
  return rows;
}

async function readRow<Row extends QueryResultRow>(client: Client, text: string): Promise<Row> {
  const { rows } = await client.query<Row>(text);
  return rows[0]!;
}
