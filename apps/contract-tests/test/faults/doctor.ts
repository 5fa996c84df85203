import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CustomerChanged } from '@scheduling/contracts/events/v1';
import { withClient } from '@scheduling/embedded';
import { events } from '@scheduling/events';
import { databaseServices, type Unit } from '@scheduling/stack';
import {
  createCertificateAuthority,
  startServiceProcesses,
  startTestNats,
  startTestSmtp,
  storeCertificate,
  whilePaused,
} from '@scheduling/testing';
import { Client } from 'pg';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { runAdmin } from '@scheduling/test-stack/command';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { waitForErasures } from '../wait-for-erasures.ts';
import { practiceForFaults, stackForFaults } from './stack-with-faults.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await stackForFaults();
}, 400_000);

const examine = () => runAdmin({ SCHEDULING_DATA: stack.dataDir }, 'doctor');

/** Does something while a process hangs, as if its machine were lost. */
async function whileHanging<Result>(unit: Unit, action: () => Promise<Result>): Promise<Result> {
  return whilePaused([(await stack.currentInfo()).pids[unit]!], action);
}

/** Examines again until it finds that: on a busy machine a service may not answer the doctor in time. */
function examineUntil(expected: RegExp): ReturnType<typeof examine> {
  const examination = async () => {
    const report = await examine();
    expect(report.output).toMatch(expected);
    return report;
  };
  return vi.waitFor(examination, { timeout: 180_000 });
}

/** In the database that belongs to no service. */
async function asSuperuser(...statements: string[]): Promise<void> {
  const url = new URL(stack.info.databases.calendar);
  url.username = 'scheduling';
  url.password = (await readFile(join(stack.dataDir, 'postgres-password'), 'utf8')).trim();
  url.pathname = '/postgres';
  await withClient(url.href, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
}

function expectFault({ code, output }: Awaited<ReturnType<typeof examine>>, line: RegExp, remedy: RegExp): void {
  expect(output).toMatch(new RegExp(`^${line.source}.*\\n +→ .*${remedy.source}`, 'm'));
  expect(code).toBe(1);
}

/** For one that the test causes: until the doctor finds it. */
async function expectToFind(line: RegExp, remedy: RegExp): Promise<void> {
  expectFault(await examineUntil(line), line, remedy);
}

describe('the doctor', { timeout: 240_000 }, () => {
  it('finds nothing on a healthy system, and checks everything', async () => {
    // The practices of the other files would be found.
    await query('identity', `UPDATE provider SET phone = '+49 30 1234567'`, [], stack.info);
    // The consumers are created after the start.
    const { code, output } = await examineUntil(/^0 faults, 0 warnings, \d+ ok, 0 not checked$/m);
    for (const check of [
      'gateway',
      'page',
      ...databaseServices,
      ...databaseServices.map((service) => `schema of ${service}`),
      ...databaseServices.map((service) => `writes of ${service}`),
      ...databaseServices.map((service) => `locks of ${service}`),
      ...['archive of', 'standbys of', 'connections to'].map((what) => `${what} Postgres`),
      'stream',
      'erasures',
      'contacts in mails',
      'waiting events',
      'webhooks',
      'mail server',
    ]) {
      expect(output).toMatch(new RegExp(`^${check} +ok `, 'm'));
    }
    expect(output).toMatch(/^consumers of notification +ok +all 8 exist$/m);
    expect(output).toMatch(/^lag of calendar-customer-customer-erasure-requested +ok +nothing waits$/m);
    expect(code).toBe(0);
  });

  it('reports a service that does not answer', async () => {
    const report = await whileHanging('notification', () => examineUntil(/^calendar +ok /m));
    expectFault(report, /notification +FAULT +does not respond at 127/, /read the end of its log/);
    expect(report.output).toMatch(/^waiting mails +not checked +the notification service does not answer$/m);
  });

  it('reports that page does not answer, and that links in mails lead elsewhere', async () => {
    await whileHanging('page', () =>
      expectToFind(/page +FAULT +does not respond at http/, /links in mails do not work/),
    );
    expectFault(
      await runAdmin({ PUBLIC_URL: stack.info.gateway }, 'doctor'),
      /page +FAULT +http:.*\/booking\/doctor is answered with 404, but not by page/,
      /have the proxy send \/book, \/booking, \/decide and \/calendar to page/,
    );
  });

  it('warns of providers whose mails have no link, and name nobody to ask', async () => {
    const { crm, practice } = await practiceForFaults();
    const ofContacts = async () => /^contacts in mails +.*$/m.exec((await examine()).output)![0];
    expect(await ofContacts()).toMatch(/ warning +neither a link nor an e-mail address or number for \d+: /);
    expect(await ofContacts()).toContain(`${practice.provider} of CRM ${crm.crmId}`);
    await crm.put(`${practice.at}/booking-rules`, { selfService: true });
    expect(await ofContacts()).not.toContain(practice.provider);
    await crm.put(`${practice.at}/booking-rules`, { selfService: false });
    await crm.put(practice.at, { phone: '+49 30 1234567' });
    expect(await ofContacts()).not.toContain(practice.provider);
  });

  it('reports that NATS is down', async () => {
    await whileHanging('nats', () =>
      expectToFind(/stream +FAULT +NATS does not respond/, /events wait in the outboxes/),
    );
  });

  it('reports a dead letter', async () => {
    await query(
      'calendar',
      `INSERT INTO dead_letter (consumer, event_id, subject, payload, request_id, error, attempts)
       VALUES ('calendar-identity-provider-changed', gen_random_uuid(), 'scheduling.identity.v1.provider-changed', '', 'r', 'Error: poison', 10)`,
      [],
      stack.info,
    );
    try {
      await expectToFind(/dead letters of calendar +FAULT +1, the newest: Error: poison/, /dead-letters list/);
    } finally {
      await query('calendar', 'DELETE FROM dead_letter', [], stack.info);
    }
  });

  it('reports a missing migration, one that this version does not know, and one that it cannot work with', async () => {
    const rename = (from: string, to: string) =>
      query('customer', 'UPDATE customer_migration SET name = $2 WHERE name = $1', [from, to], stack.info);
    const [known, unknown] = ['2026-11-21-customers', '9999-of-the-future'];
    try {
      await rename(known, unknown);
      await expectToFind(
        /schema of customer +FAULT +lacks customer\/2026-11-21-customers/,
        /run the migrations of customer/,
      );
      await query(
        'customer',
        'INSERT INTO customer_migration SELECT $1, timestamp FROM customer_migration LIMIT 1',
        [known],
        stack.info,
      );
      const { code, output } = await examineUntil(/^0 faults, /m);
      expect(output).toMatch(/^schema of customer +warning +has customer\/9999-of-the-future/m);
      expect(code).toBe(0);
      await query(
        'customer',
        'CREATE TABLE breaking_migration AS SELECT $1::text AS set_name, $2::text AS name',
        ['customer', unknown],
        stack.info,
      );
      await expectToFind(
        /schema of customer +FAULT +has customer\/9999-of-the-future, with which the running version cannot work/,
        /run the version of customer that created them/,
      );
    } finally {
      await query('customer', 'DROP TABLE IF EXISTS breaking_migration', [], stack.info);
      await query(
        'customer',
        'INSERT INTO customer_migration SELECT $1, timestamp FROM customer_migration LIMIT 1 ON CONFLICT DO NOTHING',
        [known],
        stack.info,
      );
      await query('customer', 'DELETE FROM customer_migration WHERE name = $1', [unknown], stack.info);
    }
  });

  it('reports a database that does not answer, while its service does', async () => {
    await whileHanging('postgres', () =>
      expectToFind(/database of calendar +FAULT +does not respond/, /check whether Postgres is running/),
    );
  });

  it('reports a database that is read-only', async () => {
    const set = (change: string) => asSuperuser(`ALTER DATABASE calendar ${change}`);
    await set('SET default_transaction_read_only = on');
    try {
      await expectToFind(
        /writes of calendar +FAULT +Postgres is read-only/,
        /DATABASE_URL of calendar leads to a standby/,
      );
    } finally {
      await set('RESET default_transaction_read_only');
    }
    await examineUntil(/^writes of calendar +ok /m);
  });

  it('reports commits that wait for a synchronous standby', async () => {
    const set = async (standbys: string) => {
      await asSuperuser(`ALTER SYSTEM SET synchronous_standby_names = ${standbys}`, 'SELECT pg_reload_conf()');
    };
    await set(`'standby'`);
    try {
      const line =
        /writes of customer +FAULT +a commit did not finish within 500 ms; sessions that wait for a synchronous standby \(standby\): \d/;
      const report = await examineUntil(line);
      expectFault(report, line, /start the standby/);
      expectFault(report, /standbys of Postgres +FAULT +none is connected/, /start a standby/);
    } finally {
      await set('DEFAULT');
    }
    await examineUntil(/^writes of customer +ok /m);
  });

  it('reports a table that somebody has locked, and sessions that wait for another one', async () => {
    const client = new Client({ connectionString: stack.info.databases.calendar });
    await client.connect();
    let waiting: Promise<unknown> | undefined;
    try {
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await client.query('BEGIN');
      await client.query('LOCK TABLE participation IN ACCESS EXCLUSIVE MODE');
      const { pid } = rows[0]!;
      await expectToFind(
        new RegExp(`locks of calendar +FAULT +nothing can be written to participation: session ${pid} has locked it`),
        new RegExp(`SELECT pg_terminate_backend\\(${pid}\\)`),
      );
      waiting = query('calendar', 'SELECT count(*) FROM participation', [], stack.info);
      await expectToFind(
        new RegExp(`locks of calendar +warning +\\d+ sessions? waits? for session ${pid}, the first of them for \\d`),
        new RegExp(`SELECT pg_terminate_backend\\(${pid}\\)`),
      );
    } finally {
      await client.end();
      await waiting;
    }
  });

  it('reports events that are not published, and an erasure that is not confirmed', async () => {
    // Of nobody: NATS may get it when it resumes.
    const { subject, toJson } = events.customerChanged;
    // The relay must not be faster than the doctor.
    await whileHanging('nats', async () => {
      await query(
        'customer',
        `INSERT INTO outbox (subject, data, request_id, created_at) VALUES ($1, $2, 'r', now() - interval '3 minutes')`,
        [subject, toJson(CustomerChanged.fromPartial({ crmId: 'nobody', customerId: randomUUID(), version: 1 }))],
        stack.info,
      );
      try {
        await expectToFind(
          /outbox of customer +FAULT +1 events wait, the oldest for [34] min/,
          /check whether NATS is running/,
        );
      } finally {
        await query('customer', 'DELETE FROM outbox WHERE sent_at IS NULL', [], stack.info);
      }
    });
    await whileHanging('calendar', async () => {
      await query(
        'customer',
        `INSERT INTO erasure (crm_id, customer_id, state, ignore_future_appointments, requested_at)
         VALUES ('crm', gen_random_uuid(), 'requested', true, now() - interval '5 minutes')`,
        [],
        stack.info,
      );
      await expectToFind(
        /erasures +FAULT +1 open, the oldest for ([5-9]|1\d) min, waiting for calendar/,
        /check whether calendar/,
      );
    });
    await waitForErasures(stack.info, 60_000);
  });

  it('reports events that get no place in the feed, and webhooks that are behind', async () => {
    const crm = 'doctor';
    const ofEvent = `'${crm}', uuidv7(), 'customer.changed', gen_random_uuid(), 0, 'service'`;
    const client = new Client({ connectionString: stack.info.databases.webhook });
    await client.connect();
    try {
      // What gives events their places waits for this lock.
      await client.query(`SELECT pg_advisory_lock(hashtextextended('sequence_events', 0))`);
      await client.query(
        `INSERT INTO incoming_event (crm_id, id, type, subject_id, version, actor, arrived_at) VALUES (${ofEvent}, now() - interval '3 minutes')`,
      );
      await expectToFind(
        /waiting events +FAULT +1, the oldest for (1[89]|[2-5]\d)\d s/,
        /CRMs do not learn of changes/,
      );
      await client.query('DELETE FROM incoming_event WHERE crm_id = $1', [crm]);
      await client.query(
        `INSERT INTO event (crm_id, id, type, subject_id, version, actor, sequence, recorded_at) VALUES (${ofEvent}, 1, now() - interval '10 minutes')`,
      );
      await client.query(
        `INSERT INTO webhook (crm_id, id, reference, url, types, ignore_actors, secret, position, state) VALUES ($1, uuidv7(), 'w', 'https://crm.example/', '{}', '{}', '', 0, 'idle')`,
        [crm],
      );
      const { code, output } = await examineUntil(/^0 faults, /m);
      expect(output).toMatch(/^webhooks +warning +1 delivering \(up to [6-9]\d\d s behind\), 0 retrying, 0 disabled/m);
      expect(code, output).toBe(0);
    } finally {
      for (const table of ['incoming_event', 'event', 'webhook'])
        await client.query(`DELETE FROM ${table} WHERE crm_id = $1`, [crm]);
      await client.end();
    }
  });

  it('lists what was not checked for lack of an address, and does not count it as ok', async () => {
    await using smtp = await startTestSmtp();
    const { code, output } = await runAdmin({ SMTP_URL: smtp.url }, 'doctor');
    expect(output).toMatch(/^mail server +ok /m);
    expect(output).toMatch(/^gateway +not checked +PUBLIC_URL is not set$/m);
    expect(output).toMatch(/^page +not checked +PAGE_URL is not set$/m);
    expect(output).toMatch(/^database of calendar +not checked +CALENDAR_ADDRESS is not set$/m);
    expect(output).toMatch(/^0 faults, 0 warnings, 1 ok, \d\d not checked$/m);
    expect(code).toBe(0);
    await smtp.stop();
    expectFault(
      await runAdmin({ SMTP_URL: smtp.url }, 'doctor'),
      /mail server +FAULT +127\.0\.0\.1:\d+ cannot be used/,
      /mails wait for 24 hours/,
    );
  });

  it('reports that NATS rejects its user, and warns of a NATS that needs none', async () => {
    await using nats = await startTestNats();
    const wrong = nats.url('doctor').replace(/:[^:@]+@/, ':wrong@');
    expectFault(
      await runAdmin({ NATS_URL: wrong }, 'doctor'),
      /stream +FAULT +NATS rejects the user/,
      /correct the user and the password in NATS_URL/,
    );
    await using open = await startTestNats({ users: false });
    const { output } = await runAdmin({ NATS_URL: open.url('doctor') }, 'doctor');
    expect(output).toMatch(/^users of NATS +warning +anyone who can reach NATS can read and publish all events$/m);
  });

  it('checks the certificates of the gateway and of mutual TLS', async () => {
    await using resources = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'doctor-test-'));
    resources.defer(() => rm(folder, { recursive: true }));
    const authority = await createCertificateAuthority();
    const store = async (name: string): Promise<Record<string, string>> => {
      const files = await storeCertificate(join(folder, name), await authority.issue(name), authority);
      return {
        GRPC_TLS_CERT_FILE: files.certificate,
        GRPC_TLS_KEY_FILE: files.key,
        GRPC_TLS_CA_FILE: files.authorities,
      };
    };
    const nats = resources.use(await startTestNats());
    const environment = await store('identity');
    const { identity } = resources.use(await startServiceProcesses(['identity'], nats.url, { environment }));
    const gateway = createHttpsServer(await authority.issue('localhost'), ({ url }, response) =>
      response.writeHead(url === '/readyz' ? 200 : 404, { 'x-robots-tag': 'noindex' }).end(),
    ).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    resources.defer(() => void gateway.close());
    const given = {
      PUBLIC_URL: `https://localhost:${(gateway.address() as AddressInfo).port}`,
      IDENTITY_ADDRESS: identity.adminAddress,
    };

    const trusting = { ...given, ...(await store('admin')), NODE_EXTRA_CA_CERTS: join(folder, 'admin', 'ca.crt') };
    const well = await runAdmin(trusting, 'doctor');
    for (const check of [
      'gateway',
      'page',
      'identity',
      'certificate of the gateway',
      'certificate of identity',
      'own certificate',
    ]) {
      expect(well.output).toMatch(new RegExp(`^${check} +ok `, 'm'));
    }
    expect(well.code).toBe(0);
    const host = new URL(given.PUBLIC_URL).host.replace('localhost', '127.0.0.1');
    const { output } = await runAdmin({ ...trusting, PAGE_URL: `https://${host}` }, 'doctor');
    expect(output).toMatch(/^certificate of page +FAULT +is not trusted/m);
    const distrusting = await runAdmin(given, 'doctor');
    expectFault(
      distrusting,
      /certificate of the gateway +FAULT +is not trusted/,
      /from an authority that clients trust/,
    );
    expect(distrusting.output).toMatch(/^identity +FAULT +does not respond/m);
  });

  it('does not wait for servers that accept connections and never answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const given = {
      PUBLIC_URL: `https://${host}`,
      CALENDAR_ADDRESS: host,
      NATS_URL: `nats://${host}`,
      SMTP_URL: `smtp://${host}`,
    };
    const { code, output } = await runAdmin(given, 'doctor');
    for (const check of ['gateway', 'page', 'calendar', 'stream', 'mail server', 'certificate of the gateway']) {
      expect(output).toMatch(new RegExp(`^${check} +FAULT `, 'm'));
    }
    expect(code).toBe(1);
    silent.close();
  });
});
