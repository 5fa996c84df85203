import { randomUUID } from 'node:crypto';
import { CustomerChanged } from '@scheduling/contracts/events/v1';
import { connectBroker, events, type JetStream, streamName, streamSettings } from '@scheduling/events';
import type { DatabaseService } from '@scheduling/stack';
import { eventually, startTestNats, startTestSmtp, testLogger, type TestNats } from '@scheduling/testing';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { Client } from 'pg';
import { waitForErasures } from '../wait-for-erasures.ts';
import { asSuperuser } from './as-superuser.ts';
import { hang, kill } from './processes.ts';
import { practiceForFaults } from './stack-with-faults.ts';

/** Something that is wrong with a system, and how the doctor names it. */
export interface Trouble {
  trouble: string;
  /**
   * Causes it, until the resources are disposed. The doctor examines the system of the returned variables, or else the
   * stack.
   */
  cause: (resources: AsyncDisposableStack, stack: TestStack) => Promise<NodeJS.ProcessEnv | void>;
  level: 'FAULT' | 'warning';
  check: string;
  seen: RegExp;
  remedy: RegExp;
  /** What the doctor must not say, because it is wrong. */
  never?: RegExp;
}

/** Executes statements in the database of a service, and others at the end. */
async function change(
  resources: AsyncDisposableStack,
  { info }: TestStack,
  service: DatabaseService,
  { now, finally: last }: { now: string; finally: string },
): Promise<void> {
  resources.defer(async () => void (await query(service, last, [], info)));
  await query(service, now, [], info);
}

/** Sets something for the whole server, or a database, and resets it at the end. */
async function set(resources: AsyncDisposableStack, stack: TestStack, now: string[], last: string[]): Promise<void> {
  resources.defer(() => asSuperuser(stack, ...last));
  await asSuperuser(stack, ...now);
}

/** Commits wait for a standby that there is not. */
const loseStandby: Trouble['cause'] = (resources, stack) =>
  set(
    resources,
    stack,
    [`ALTER SYSTEM SET synchronous_standby_names = 'standby'`, 'SELECT pg_reload_conf()'],
    ['ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()'],
  );

async function openClient(resources: AsyncDisposableStack, { info }: TestStack, service: DatabaseService) {
  const client = new Client({ connectionString: info.databases[service] });
  // The server may be killed meanwhile.
  client.on('error', () => undefined);
  await client.connect();
  resources.defer(() => client.end());
  return client;
}

/** Creates the stream, and changes it as a user who may do everything. */
async function createStream(
  nats: TestNats,
  change: (jetStream: JetStream) => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  await using broker = connectBroker({ url: nats.url('test'), name: 'test', logger: testLogger('doctor-test') });
  await change(await broker.jetStream(AbortSignal.timeout(5_000)));
}

/** Restarts Postgres with settings that it only reads at its start, and at the end without them. */
async function restartPostgres(resources: AsyncDisposableStack, stack: TestStack, settings: string[]): Promise<void> {
  const restart = async (statements: string[]) => {
    await asSuperuser(stack, ...statements.map((statement) => `ALTER SYSTEM ${statement}`));
    await kill(stack, 'postgres');
    await eventually(() => asSuperuser(stack, 'SELECT'));
  };
  resources.defer(() => restart(['RESET ALL']));
  await restart(settings);
}

const rename = (from: string, to: string) => `UPDATE customer_migration SET name = '${to}' WHERE name = '${from}'`;
const [known, unknown] = ['2026-11-21-customers', '9999-of-the-future'];
const addUnknown = `INSERT INTO customer_migration SELECT '${unknown}', timestamp FROM customer_migration LIMIT 1`;
const removeUnknown = `DELETE FROM customer_migration WHERE name = '${unknown}'`;

const mail = (columns: string, values: string) => ({
  now: `INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, ${columns})
        VALUES ('doctor', gen_random_uuid(), gen_random_uuid(), 1, 'booking-confirmed', 'r', ${values})`,
  finally: `DELETE FROM mail WHERE crm_id = 'doctor'`,
});

const feedEvent = (crm: string) => `'${crm}', uuidv7(), 'customer.changed', gen_random_uuid(), 0, 'service'`;
const feedColumns = 'crm_id, id, type, subject_id, version, actor';

export const troubles: Trouble[] = [
  {
    trouble: 'a service that does not answer',
    cause: async (resources, stack) => void resources.use(await hang(stack, 'notification')),
    level: 'FAULT',
    check: 'notification',
    seen: /does not respond at 127/,
    remedy: /read the end of its log/,
  },
  {
    trouble: 'a gateway that does not answer',
    cause: async (resources, stack) => void resources.use(await hang(stack, 'gateway')),
    level: 'FAULT',
    check: 'gateway',
    seen: /does not respond at http/,
    remedy: /whether the DNS name and the load balancer point to it/,
  },
  {
    trouble: 'a page that does not answer',
    cause: async (resources, stack) => void resources.use(await hang(stack, 'page')),
    level: 'FAULT',
    check: 'page',
    seen: /does not respond at http/,
    remedy: /links in mails do not work/,
  },
  {
    trouble: 'links in mails that lead elsewhere',
    cause: (_, { info }) => Promise.resolve({ PUBLIC_URL: info.gateway }),
    level: 'FAULT',
    check: 'page',
    seen: /http:.*\/booking\/doctor is answered with 404, but not by page/,
    remedy: /have the proxy send \/book, \/booking, \/decide and \/calendar to page/,
  },
  {
    trouble: 'a provider whose mails have no link, and name nobody to ask',
    cause: async (resources) => {
      const { crm, practice } = await practiceForFaults();
      resources.defer(async () => void (await crm.put(practice.at, { phone: '+49 30 1234567' })));
    },
    level: 'warning',
    check: 'contacts in mails',
    seen: /neither a link nor an e-mail address or number for \d+: .* of CRM /,
    remedy: /ask the CRM to give each an address or a number/,
  },
  {
    trouble: 'a NATS that does not answer',
    cause: async (resources, stack) => void resources.use(await hang(stack, 'nats')),
    level: 'FAULT',
    check: 'stream',
    seen: /NATS does not respond/,
    remedy: /events wait in the outboxes/,
  },
  {
    trouble: 'a NATS that rejects its user',
    cause: async (resources) => {
      const nats = resources.use(await startTestNats());
      return { NATS_URL: nats.url('doctor').replace(/:[^:@]+@/, ':wrong@') };
    },
    level: 'FAULT',
    check: 'stream',
    seen: /NATS rejects the user/,
    remedy: /correct the user and the password in NATS_URL/,
  },
  {
    trouble: 'a NATS that everybody may use',
    cause: async (resources) => {
      const nats = resources.use(await startTestNats({ users: false }));
      await createStream(nats);
      return { NATS_URL: nats.url('doctor') };
    },
    level: 'warning',
    check: 'users of NATS',
    seen: /anyone who can reach NATS can read and publish all events/,
    remedy: /give each service its own user/,
  },
  {
    trouble: 'a stream that does not exist',
    cause: async (resources) => ({ NATS_URL: resources.use(await startTestNats()).url('doctor') }),
    level: 'FAULT',
    check: 'stream',
    seen: /does not exist/,
    remedy: /whether any service is running and reaches NATS/,
  },
  {
    trouble: 'a stream that does not keep events for long enough',
    cause: async (resources) => {
      const nats = resources.use(await startTestNats());
      const day = streamSettings.max_age / 7;
      await createStream(nats, ({ manager }) => manager.streams.update(streamName, { max_age: day }));
      return { NATS_URL: nats.url('doctor') };
    },
    level: 'FAULT',
    check: 'stream',
    seen: /it keeps events for 1 days/,
    remedy: /delete it: the services recreate it with .* 7 days/,
  },
  {
    trouble: 'a service whose events nothing keeps for it',
    cause: async (resources, { info }) => {
      const nats = resources.use(await startTestNats());
      await createStream(nats);
      return { NATS_URL: nats.url('doctor'), NOTIFICATION_ADDRESS: info.admin.notification };
    },
    level: 'FAULT',
    check: 'consumers of notification',
    seen: /missing: .*notification-calendar-/,
    remedy: /whether notification reaches NATS/,
  },
  {
    trouble: 'a Postgres that does not answer',
    cause: async (resources, stack) => void resources.use(await hang(stack, 'postgres')),
    level: 'FAULT',
    check: 'database of calendar',
    seen: /does not respond/,
    remedy: /check whether Postgres is running/,
  },
  {
    trouble: 'a database that is read-only',
    cause: (resources, stack) =>
      set(
        resources,
        stack,
        ['ALTER DATABASE calendar SET default_transaction_read_only = on'],
        ['ALTER DATABASE calendar RESET default_transaction_read_only'],
      ),
    level: 'FAULT',
    check: 'writes of calendar',
    seen: /Postgres is read-only/,
    remedy: /DATABASE_URL of calendar leads to a standby/,
    never: /database of calendar +FAULT/,
  },
  {
    trouble: 'commits that wait for a synchronous standby',
    cause: loseStandby,
    level: 'FAULT',
    check: 'writes of customer',
    seen: /a commit did not finish within 500 ms; sessions that wait for a synchronous standby \(standby\): \d/,
    remedy: /start the standby/,
  },
  {
    trouble: 'a synchronous standby that is not connected',
    cause: loseStandby,
    level: 'FAULT',
    check: 'standbys of Postgres',
    seen: /none is connected, and every commit waits for one \(standby\)/,
    remedy: /start a standby/,
  },
  {
    trouble: 'a replication slot that nobody uses',
    cause: (resources, stack) =>
      set(
        resources,
        stack,
        [`SELECT pg_create_physical_replication_slot('former', true)`],
        [`SELECT pg_drop_replication_slot('former')`],
      ),
    level: 'warning',
    check: 'slots of Postgres',
    seen: /nobody uses the replication slot former, for which \d+ MiB of the log are kept/,
    remedy: /drop it: SELECT pg_drop_replication_slot\('former'\); until then, the disk fills/,
  },
  {
    trouble: 'an archive that does not take the write-ahead log',
    cause: async (resources, stack) => {
      await restartPostgres(resources, stack, ['SET archive_mode = on', `SET archive_command = 'false'`]);
      await asSuperuser(stack, 'SELECT pg_switch_wal()');
    },
    level: 'FAULT',
    check: 'archive of Postgres',
    seen: /does not take the write-ahead log/,
    remedy: /the log of Postgres says why \(archive command failed\)/,
  },
  {
    trouble: 'a database that accepts no connection any more',
    cause: (resources, stack) =>
      set(
        resources,
        stack,
        ['ALTER DATABASE calendar CONNECTION LIMIT 0'],
        ['ALTER DATABASE calendar CONNECTION LIMIT -1'],
      ),
    level: 'FAULT',
    check: 'database of calendar',
    seen: /does not respond: too many connections for database/,
    remedy: /find out what all the connections wait for/,
  },
  {
    trouble: 'a Postgres most of whose connections are in use',
    cause: async (resources, stack) => {
      const client = await openClient(resources, stack, 'webhook');
      const { rows } = await client.query<{ free: number }>(
        `SELECT current_setting('max_connections')::int - sum(numbackends)::int AS free FROM pg_stat_database`,
      );
      await Promise.all(Array.from({ length: rows[0]!.free - 12 }, () => openClient(resources, stack, 'webhook')));
    },
    level: 'warning',
    check: 'connections to Postgres',
    seen: /\d+ of 200 are in use/,
    remedy: /raise max_connections/,
  },
  {
    trouble: 'a table that somebody has locked',
    cause: async (resources, stack) => {
      const client = await openClient(resources, stack, 'calendar');
      await client.query('BEGIN; LOCK TABLE participation IN ACCESS EXCLUSIVE MODE');
    },
    level: 'FAULT',
    check: 'locks of calendar',
    seen: /nothing can be written to participation: session \d+ has locked it/,
    remedy: /SELECT pg_terminate_backend\(\d+\)/,
  },
  {
    trouble: 'an outbox that somebody has locked',
    cause: async (resources, stack) => {
      const client = await openClient(resources, stack, 'calendar');
      await client.query('BEGIN; LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE');
    },
    level: 'FAULT',
    check: 'locks of calendar',
    seen: /nothing can be written to outbox: session \d+ has locked it/,
    remedy: /SELECT pg_terminate_backend\(\d+\)/,
    never: /database of calendar +FAULT/,
  },
  {
    trouble: 'sessions that wait for another one',
    cause: async (resources, stack) => {
      const client = await openClient(resources, stack, 'calendar');
      await client.query('BEGIN; LOCK TABLE participation IN ACCESS EXCLUSIVE MODE');
      const waiting = query('calendar', 'SELECT count(*) FROM participation', [], stack.info);
      resources.defer(async () => {
        await client.query('ROLLBACK');
        await waiting;
      });
    },
    level: 'warning',
    check: 'locks of calendar',
    seen: /\d+ sessions? waits? for session \d+, the first of them for \d/,
    remedy: /SELECT pg_terminate_backend\(\d+\)/,
  },
  {
    trouble: 'a migration that is missing',
    cause: (resources, stack) =>
      change(resources, stack, 'customer', { now: rename(known, unknown), finally: rename(unknown, known) }),
    level: 'FAULT',
    check: 'schema of customer',
    seen: /lacks customer\/2026-11-21-customers/,
    remedy: /run the migrations of customer/,
  },
  {
    trouble: 'a migration that this version does not know',
    cause: (resources, stack) => change(resources, stack, 'customer', { now: addUnknown, finally: removeUnknown }),
    level: 'warning',
    check: 'schema of customer',
    seen: /has customer\/9999-of-the-future, which the running version does not know/,
    remedy: /expected during a rollout and after a rollback/,
  },
  {
    trouble: 'a migration with which this version cannot work',
    cause: (resources, stack) =>
      change(resources, stack, 'customer', {
        now: `${addUnknown};
              CREATE TABLE breaking_migration AS SELECT 'customer'::text AS set_name, '${unknown}'::text AS name`,
        finally: `DROP TABLE IF EXISTS breaking_migration; ${removeUnknown}`,
      }),
    level: 'FAULT',
    check: 'schema of customer',
    seen: /has customer\/9999-of-the-future, with which the running version cannot work/,
    remedy: /run the version of customer that created them/,
  },
  {
    trouble: 'an event that could not be processed',
    cause: (resources, stack) =>
      change(resources, stack, 'calendar', {
        now: `INSERT INTO dead_letter (consumer, event_id, subject, payload, request_id, error, attempts)
              VALUES ('calendar-identity-provider-changed', gen_random_uuid(), 'scheduling.identity.v1.provider-changed', '', 'r', 'Error: poison', 10)`,
        finally: 'DELETE FROM dead_letter',
      }),
    level: 'FAULT',
    check: 'dead letters of calendar',
    seen: /1, the newest: Error: poison/,
    remedy: /dead-letters list/,
  },
  {
    trouble: 'events that are not published',
    cause: async (resources, stack) => {
      // The relay must not be faster than the doctor. Of nobody: NATS may get it when it resumes.
      const { subject, toJson } = events.customerChanged;
      const data = toJson(CustomerChanged.fromPartial({ crmId: 'nobody', customerId: randomUUID(), version: 1 }));
      resources.use(await hang(stack, 'nats'));
      await change(resources, stack, 'customer', {
        now: `INSERT INTO outbox (subject, data, request_id, created_at) VALUES ('${subject}', '${JSON.stringify(data)}', 'r', now() - interval '3 minutes')`,
        finally: 'DELETE FROM outbox WHERE sent_at IS NULL',
      });
    },
    level: 'FAULT',
    check: 'outbox of customer',
    seen: /1 events wait, the oldest for [34] min/,
    remedy: /check whether NATS is running/,
  },
  {
    trouble: 'an erasure that is not confirmed',
    cause: async (resources, stack) => {
      // It is confirmed once calendar answers again.
      resources.defer(() => waitForErasures(stack.info, 60_000));
      resources.use(await hang(stack, 'calendar'));
      await query(
        'customer',
        `INSERT INTO erasure (crm_id, customer_id, state, ignore_future_appointments, requested_at)
         VALUES ('crm', gen_random_uuid(), 'requested', true, now() - interval '5 minutes')`,
        [],
        stack.info,
      );
    },
    level: 'FAULT',
    check: 'erasures',
    seen: /1 open, the oldest for ([5-9]|1\d) min, waiting for calendar/,
    remedy: /check whether calendar/,
  },
  {
    trouble: 'events that get no place in the feed',
    cause: async (resources, stack) => {
      // What gives events their places waits for this lock.
      const client = await openClient(resources, stack, 'webhook');
      await client.query(`SELECT pg_advisory_lock(hashtextextended('sequence_events', 0))`);
      await change(resources, stack, 'webhook', {
        now: `INSERT INTO incoming_event (${feedColumns}, arrived_at) VALUES (${feedEvent('waiting')}, now() - interval '3 minutes')`,
        finally: `DELETE FROM incoming_event WHERE crm_id = 'waiting'`,
      });
    },
    level: 'FAULT',
    check: 'waiting events',
    seen: /1, the oldest for (1[89]|[2-5]\d)\d s/,
    remedy: /CRMs do not learn of changes/,
  },
  {
    trouble: 'a webhook that is behind',
    cause: async (resources, stack) => {
      const client = await openClient(resources, stack, 'webhook');
      await client.query(`SELECT pg_advisory_lock(hashtextextended('sequence_events', 0))`);
      await change(resources, stack, 'webhook', {
        now: `INSERT INTO event (${feedColumns}, sequence, recorded_at) VALUES (${feedEvent('doctor')}, 1, now() - interval '10 minutes');
              INSERT INTO webhook (crm_id, id, reference, url, types, ignore_actors, secret, position, state)
              VALUES ('doctor', uuidv7(), 'w', 'https://crm.example/', '{}', '{}', '', 0, 'idle')`,
        finally: `DELETE FROM webhook WHERE crm_id = 'doctor'; DELETE FROM event WHERE crm_id = 'doctor'`,
      });
    },
    level: 'warning',
    check: 'webhooks',
    seen: /1 delivering \(up to [6-9]\d\d s behind\), 0 retrying, 0 disabled/,
    remedy: /an endpoint is slow, or a CRM has events sent again/,
  },
  {
    trouble: 'mails that wait',
    cause: (resources, stack) =>
      change(
        resources,
        stack,
        'notification',
        mail(
          'state, content, recipient, created_at, due_at',
          `'pending', '{}', 'ada@example.com', now() - interval '20 minutes', now() + interval '1 hour'`,
        ),
      ),
    level: 'warning',
    check: 'waiting mails',
    seen: /1, the oldest for 2\d min/,
    remedy: /mails --state pending shows why/,
  },
  {
    trouble: 'mails that could not be sent',
    cause: (resources, stack) =>
      change(resources, stack, 'notification', mail('state, finished_at, last_error', `'failed', now(), 'rejected'`)),
    level: 'warning',
    check: 'failed mails',
    seen: /1 in the last 24 hours/,
    remedy: /npm run admin -- mails shows the codes/,
  },
  {
    trouble: 'a mail server that does not answer',
    cause: async (resources) => {
      const smtp = resources.use(await startTestSmtp());
      await smtp.stop();
      return { SMTP_URL: smtp.url };
    },
    level: 'FAULT',
    check: 'mail server',
    seen: /127\.0\.0\.1:\d+ cannot be used/,
    remedy: /mails wait for 24 hours/,
  },
];
