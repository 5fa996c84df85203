import { DatabaseServiceService, type GetDatabaseStateResponse } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import { createClient } from '@scheduling/rpc';
import { type DatabaseService, databaseServices, reasonOf } from '@scheduling/runtime';
import { callOptions } from '../call-options.ts';
import { addressVariable, type System } from '../config.ts';
import { checkClock } from './check-clock.ts';
import { describeSeconds, fault, type Finding, notChecked, ok, warning } from './finding.ts';

const outboxToleranceSeconds = 60;
const noConnectionLeft = /too many (?:clients|connections)|connection slots are reserved/;

/**
 * Asks each service whether its database answers, has the schema that the service needs and publishes its events, and
 * what its clock says.
 */
export async function checkDatabases(system: System): Promise<Finding[]> {
  return (
    await Promise.all(databaseServices.map((service) => checkDatabase(service, system.services[service])))
  ).flat();
}

async function checkDatabase(service: DatabaseService, address: string | undefined): Promise<Finding[]> {
  const check = `database of ${service}`;
  if (address === undefined) return [notChecked(check, addressVariable(service))];
  using client = createClient(DatabaseServiceService, service, address, callOptions());
  const askedMs = Date.now();
  try {
    const state = await client.getDatabaseState({});
    const clock = checkClock(`the ${check}`, { time: state.time!, askedMs, answeredMs: Date.now() });
    return [ok(check, 'answers'), checkSchema(service, state), checkOutbox(service, state), clock];
  } catch (error) {
    if (error instanceof DomainError && error.code === 'database.unavailable')
      return [describeUnavailable(service, error.message)];
    return [{ check, level: 'not checked', seen: reasonOf(error) }];
  }
}

/** @param reason in the words of Postgres or of the connection */
function describeUnavailable(service: DatabaseService, reason: string): Finding {
  const check = `database of ${service}`;
  const seen = `does not respond: ${reason}`;
  if (noConnectionLeft.test(reason))
    return fault(
      check,
      seen,
      'find out what all the connections wait for: SELECT wait_event, count(*) FROM pg_stat_activity GROUP BY 1, as a superuser; SyncRep means that a synchronous standby is missing',
    );
  return fault(check, seen, `check whether Postgres is running and whether DATABASE_URL of ${service} is correct`);
}

function checkSchema(
  service: DatabaseService,
  { missingMigrations, newerMigrations, breakingMigrations }: GetDatabaseStateResponse,
): Finding {
  const check = `schema of ${service}`;
  if (breakingMigrations.length > 0) {
    return fault(
      check,
      `has ${breakingMigrations.join(', ')}, with which the running version cannot work`,
      `run the version of ${service} that created them, or a newer one`,
    );
  }
  if (missingMigrations.length > 0) {
    return fault(
      check,
      `lacks ${missingMigrations.join(', ')}`,
      `run the migrations of ${service}: node apps/${service}/src/main.ts migrate, or its Job on Kubernetes`,
    );
  }
  if (newerMigrations.length > 0) {
    return warning(
      check,
      `has ${newerMigrations.join(', ')}, which the running version does not know`,
      'expected during a rollout and after a rollback; otherwise deploy the newer version',
    );
  }
  return ok(check, 'matches the running version');
}

function checkOutbox(service: DatabaseService, { outbox, missingMigrations }: GetDatabaseStateResponse): Finding {
  const check = `outbox of ${service}`;
  if (outbox === undefined) {
    const seen = missingMigrations.length > 0 ? 'migrations are missing' : 'it could not be read in time';
    return { check, level: 'not checked', seen };
  }
  const { unsentEvents, oldestUnsentSeconds, refilling } = outbox;
  if (unsentEvents === 0)
    return ok(
      check,
      refilling
        ? 'every new event is published; events that the stream lost are being published again'
        : 'every event has been published',
    );
  const seen = `${unsentEvents} events wait, the oldest for ${describeSeconds(oldestUnsentSeconds)}`;
  if (oldestUnsentSeconds <= outboxToleranceSeconds) return ok(check, seen);
  const remedy = `check whether NATS is running and read the log of ${service} for "the outbox relay failed"; nothing is lost, the events are published once the cause is gone`;
  return fault(check, seen, remedy);
}
