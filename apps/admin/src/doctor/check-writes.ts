import { type CheckDatabaseResponse, DatabaseServiceService } from '@scheduling/contracts/operations/v1';
import { createClient } from '@scheduling/rpc';
import { type DatabaseService, databaseServices, reasonOf } from '@scheduling/runtime';
import { callOptions } from '../call-options.ts';
import { addressVariable, type System } from '../config.ts';
import { describeSeconds, fault, type Finding, notChecked, ok, warning } from './finding.ts';

/** From which share of the connections on a server is nearly full. */
const manyConnections = 0.9;
const longLagSeconds = 60;
const mebibyte = 1_048_576;
const seeSessions = 'SELECT pid, usename, application_name, state, xact_start, left(query, 80) FROM pg_stat_activity';

/**
 * Has each service commit something in its database, and look at what keeps sessions waiting, at the archive and at the
 * standbys. What is found of a server with several databases is said once.
 */
export async function checkWrites(system: System): Promise<Finding[]> {
  const checks = await Promise.all(databaseServices.map((service) => checkDatabase(service, system.services[service])));
  const servers = Map.groupBy(checks.filter(isChecked), ({ state }) => state.startedAt!.getTime());
  const ofServers = [...servers.values()].flatMap((databases) => {
    const name = servers.size === 1 ? 'Postgres' : `Postgres of ${databases.map(({ service }) => service).join(', ')}`;
    const [{ state }] = databases as [Checked];
    return [
      checkArchive(name, state),
      checkStandbys(name, state),
      ...checkSlots(name, state),
      checkConnections(name, state),
    ];
  });
  return [...checks.flatMap(({ findings }) => findings), ...ofServers];
}

interface Check {
  service: DatabaseService;
  findings: Finding[];
  /** Undefined if it is not known. */
  state?: CheckDatabaseResponse;
}

type Checked = Check & { state: CheckDatabaseResponse };

function isChecked(check: Check): check is Checked {
  return check.state !== undefined;
}

async function checkDatabase(service: DatabaseService, address: string | undefined): Promise<Check> {
  const check = `writes of ${service}`;
  if (address === undefined) return { service, findings: [notChecked(check, addressVariable(service))] };
  using client = createClient(DatabaseServiceService, service, address, callOptions());
  try {
    const state = await client.checkDatabase({});
    return { service, state, findings: [checkCommit(service, state), ...checkLocks(service, state)] };
  } catch (error) {
    // That the database does not respond is the finding of another check.
    return { service, findings: [{ check, level: 'not checked', seen: reasonOf(error) }] };
  }
}

function checkCommit(
  service: DatabaseService,
  { readOnly, unfinished, refusal, waitingForStandby, synchronousStandbyNames }: CheckDatabaseResponse,
): Finding {
  const check = `writes of ${service}`;
  if (readOnly)
    return fault(
      check,
      'Postgres is read-only',
      `DATABASE_URL of ${service} leads to a standby, or default_transaction_read_only is on: let it lead to the primary; the services reconnect by themselves`,
    );
  if (unfinished && waitingForStandby > 0)
    return fault(
      check,
      `${refusal}; sessions that wait for a synchronous standby (${synchronousStandbyNames}): ${waitingForStandby}`,
      'start the standby, or another one; nothing is lost meanwhile, and every commit waits',
    );
  if (unfinished)
    return fault(check, refusal, 'look at the disk and at the load of Postgres, and whether its processes hang');
  if (refusal !== '')
    return fault(check, `refused: ${refusal}`, 'remove the cause; if there is no space, enlarge the disk of Postgres');
  return ok(check, 'are committed');
}

function checkLocks(service: DatabaseService, { lockedTables, blockingSessions }: CheckDatabaseResponse): Finding[] {
  const check = `locks of ${service}`;
  const locks = lockedTables.map(({ table, pid }) => {
    const { name, remedy } = describeHolder(pid);
    return fault(
      check,
      `nothing can be written to ${table}: ${name} has locked it`,
      `wait for a migration, or ${remedy}`,
    );
  });
  const sessions = blockingSessions.map(({ pid, blocked, seconds }) => {
    const { name, remedy } = describeHolder(pid);
    const waiting = blocked === 1 ? '1 session waits' : `${blocked} sessions wait`;
    return warning(check, `${waiting} for ${name}, the first of them for ${describeSeconds(seconds)}`, remedy);
  });
  const findings = [...locks, ...sessions];
  return findings.length > 0 ? findings : [ok(check, 'nobody waits for long')];
}

/** A prepared transaction has no process. */
function describeHolder(pid: number): { name: string; remedy: string } {
  if (pid === 0)
    return {
      name: 'a prepared transaction',
      remedy: 'end it: SELECT * FROM pg_prepared_xacts shows its gid, for COMMIT PREPARED or ROLLBACK PREPARED',
    };
  return {
    name: `session ${pid}`,
    remedy: `end it: SELECT pg_terminate_backend(${pid}). To see it: ${seeSessions} WHERE pid = ${pid}`,
  };
}

function checkArchive(server: string, { archive }: CheckDatabaseResponse): Finding {
  const check = `archive of ${server}`;
  if (archive === undefined) return ok(check, 'is not used: archive_mode is off');
  const { failing, secondsSinceSuccess } = archive;
  if (!failing) return ok(check, 'takes the write-ahead log');
  const since = secondsSinceSuccess === undefined ? '' : `, since ${describeSeconds(secondsSinceSuccess)}`;
  return fault(
    check,
    `does not take the write-ahead log${since}`,
    'the log of Postgres says why (archive command failed); until then, the disk fills, and a restore loses what was written since',
  );
}

function checkStandbys(
  server: string,
  { synchronousStandbyNames, standbys, replayLagSeconds, unfinished, waitingForStandby }: CheckDatabaseResponse,
): Finding {
  const check = `standbys of ${server}`;
  if (standbys === 0)
    return synchronousStandbyNames === ''
      ? ok(check, 'there are none')
      : fault(
          check,
          `none is connected, and every commit waits for one (${synchronousStandbyNames})`,
          'start a standby; nothing is lost meanwhile',
        );
  const seen = `${standbys} connected`;
  if (unfinished && waitingForStandby > 0)
    return fault(
      check,
      `${seen}, and none of them confirms commits (${synchronousStandbyNames})`,
      'compare application_name in the primary_conninfo of the standbys with synchronous_standby_names, and look whether they hang',
    );
  if (replayLagSeconds === undefined || replayLagSeconds < longLagSeconds) return ok(check, seen);
  return warning(
    check,
    `${seen}, the slowest is ${describeSeconds(replayLagSeconds)} behind`,
    'look at its processor and disk, and for a query on it that holds replay up',
  );
}

/** Nothing is said of servers that have none. */
function checkSlots(server: string, { idleSlots }: CheckDatabaseResponse): Finding[] {
  return idleSlots.map(({ name, keptBytes }) =>
    warning(
      `slots of ${server}`,
      `nobody uses the replication slot ${name}, for which ${Math.ceil(keptBytes / mebibyte)} MiB of the log are kept`,
      `start the standby that uses it, or drop it: SELECT pg_drop_replication_slot('${name}'); until then, the disk fills`,
    ),
  );
}

function checkConnections(server: string, { connections, maxConnections }: CheckDatabaseResponse): Finding {
  const check = `connections to ${server}`;
  if (connections < maxConnections * manyConnections) return ok(check, 'there are enough');
  return warning(
    check,
    `${connections} of ${maxConnections} are in use`,
    'raise max_connections, or look for sessions that wait; when there are none left, requests get 503',
  );
}
