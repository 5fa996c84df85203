import { setTimeout as delay } from 'node:timers/promises';
import { inspectNats } from '@scheduling/events';
import { parseNatsUrl } from '@scheduling/events/nats-url';
import { reasonOf } from '@scheduling/runtime';
import { verifyMailServer } from '@scheduling/runtime/mail-server';
import { type DatabaseService, databaseVariable } from '@scheduling/stack';
import { Client } from 'pg';
import { type Settings, UsageError } from './config.ts';

const timeoutMs = 2_000;

/**
 * Checks the servers that replace the embedded ones, within 2 s. Returns a warning for each server that the stack can
 * start without. Throws a UsageError that names every database that cannot be used.
 */
export async function checkGivenServers({ databases, nats, smtp }: Settings['given']): Promise<string[]> {
  const [missing, ...warnings] = await Promise.all([
    checkDatabases(databases),
    nats &&
      check(
        'NATS_URL',
        parseNatsUrl(nats).servers.join(', '),
        inspectNats({ url: nats }),
        ': events are stored and delivered once it works.',
      ),
    smtp &&
      check(
        'SMTP_URL',
        new URL(smtp).host,
        verifyMailServer(smtp, timeoutMs),
        ': mails are stored and sent once it works.',
      ),
  ]);
  if (missing.length > 0) throw new UsageError(missing.join('\n'));
  return warnings.filter((warning) => warning !== undefined);
}

async function checkDatabases(databases: Settings['given']['databases']): Promise<string[]> {
  const checks = Object.entries(databases).map(([service, url]) => {
    const { host, pathname } = new URL(url);
    return check(databaseVariable(service as DatabaseService), `the database at ${host}${pathname}`, query(url), '.');
  });
  return (await Promise.all(checks)).filter((fault) => fault !== undefined);
}

/** Undefined when the server can be used. */
async function check(
  variable: string,
  server: string,
  attempt: Promise<unknown>,
  consequence: string,
): Promise<string | undefined> {
  const late = delay(timeoutMs, `no response within ${timeoutMs / 1_000} s`, { ref: false });
  const reason = await Promise.race([attempt.then(() => undefined, reasonOf), late]);
  return reason === undefined ? undefined : `${variable}: ${server} cannot be used (${reason})${consequence}`;
}

async function query(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  // A lost connection also emits an event.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
  } finally {
    // Not awaited: ending a connection that was never established does not complete.
    void client.end();
  }
}
