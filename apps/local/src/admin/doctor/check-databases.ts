import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type MigrationSet, readSchemaState } from '@scheduling/postgres';
import { Client, DatabaseError } from 'pg';
import { databaseVariable, repositoryRoot, type System } from '../../config.ts';
import { type DatabaseService, databaseServices } from '../../service-table.ts';
import { checkClock } from './check-clock.ts';
import { ageOf, fault, type Finding, notChecked, ok, reasonOf, warning } from './finding.ts';

const timeoutMs = 3_000;
const outboxToleranceMs = 60_000;
const undefinedTable = '42P01';

/** Whether each service's database answers, has the schema of this version, publishes its events, and knows what time it is. */
export async function checkDatabases(system: System): Promise<Finding[]> {
  return (await Promise.all(databaseServices.map((service) => checkDatabase(service, system.databases[service])))).flat();
}

async function checkDatabase(service: DatabaseService, url: string | undefined): Promise<Finding[]> {
  const check = `database of ${service}`;
  if (url === undefined) return [notChecked(check, databaseVariable(service))];
  const client = new Client({
    connectionString: url,
    application_name: 'doctor',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    options: '-c default_transaction_read_only=on',
  });
  // A connection that is lost says so with an event, too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const findings = [await checkSchema(service, client), await checkOutbox(service, client), await readClock(check, client)];
    await client.end();
    return findings;
  } catch (error) {
    // A connection that failed is not waited for: one that never came about does not end, either.
    void client.end();
    const remedy = `check whether Postgres is running and whether the address and the password in ${databaseVariable(service)} are right`;
    return [fault(check, `does not answer: ${reasonOf(error)}`, remedy)];
  }
}

async function checkSchema(service: DatabaseService, client: Client): Promise<Finding> {
  const check = `schema of ${service}`;
  const sets = await migrationSetsOf(service);
  const { missing, newer, breaking } = await readSchemaState(client, sets);
  if (breaking.length > 0) {
    return fault(check, `has ${breaking.join(', ')}, which this version cannot work with`, 'run the version that is installed, or a newer one');
  }
  if (missing.length > 0) {
    return fault(check, `lacks ${missing.join(', ')}`, `run the migrations of ${service}: node apps/${service}/src/main.ts migrate, or its Job on Kubernetes`);
  }
  if (newer.length > 0) {
    const remedy = 'run the doctor of the version that is installed; after a rollback this is as it should be';
    return warning(check, `has ${newer.join(', ')}, which this version does not know`, remedy);
  }
  return ok(check, 'matches this version');
}

/** Not by an import statement: nothing depends on a service's code, and this reads the service's own list as its `migrate` command does. */
async function migrationSetsOf(service: DatabaseService): Promise<MigrationSet[]> {
  const file = pathToFileURL(join(repositoryRoot, 'apps', service, 'src/db/migrate.ts')).href;
  return ((await import(file)) as { migrationSets: MigrationSet[] }).migrationSets;
}

async function checkOutbox(service: DatabaseService, client: Client): Promise<Finding> {
  const check = `outbox of ${service}`;
  try {
    const { rows } = await client.query<{ unsent: number; oldest: Date | null; now: Date }>(
      'SELECT count(*)::integer AS unsent, min(created_at) AS oldest, clock_timestamp() AS now FROM outbox WHERE sent_at IS NULL',
    );
    const { unsent, oldest, now } = rows[0]!;
    if (oldest === null) return ok(check, 'everything is published');
    const seen = `${unsent} events wait, the oldest for ${ageOf(oldest, now)}`;
    if (now.getTime() - oldest.getTime() <= outboxToleranceMs) return ok(check, seen);
    return fault(check, seen, `check whether NATS and ${service} are running; nothing is lost, the events are published when both are back`);
  } catch (error) {
    if (error instanceof DatabaseError && error.code === undefinedTable) return fault(check, 'does not exist', `run the migrations of ${service}`);
    throw error;
  }
}

async function readClock(whose: string, client: Client): Promise<Finding> {
  const askedMs = Date.now();
  const { rows } = await client.query<{ time: Date }>('SELECT clock_timestamp() AS time');
  return checkClock(`the ${whose}`, { time: rows[0]!.time, askedMs, answeredMs: Date.now() });
}
