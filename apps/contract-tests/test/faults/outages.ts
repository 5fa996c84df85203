import { waitUntil } from '@scheduling/embedded';
import { type Service, services } from '@scheduling/stack';
import { eventually, sumSamples } from '@scheduling/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { type Answer, path, untilServed } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForFeed } from '../feed.ts';
import { query } from '@scheduling/test-stack/databases';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { mailsAt, type ParticipationMail, sentMails, withoutTime } from '../mails.ts';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { asSuperuser } from './as-superuser.ts';
import { kill, whileHanging } from './processes.ts';
import { practiceForFaults } from './stack-with-faults.ts';

const timed = { timeout: 240_000 };
/** interface 7: answered within 2 seconds, plus the network time to the client on a busy machine. */
const answerMs = 2_000 + 500;
const healMs = 60_000;
/** A scrape waits up to 1.5 s for a dependency that does not answer. */
const scrapeMs = 5_000;
const workers = 2;

let stack: TestStack;
let crm: TestCrm;
let practice: Practice;

beforeAll(async () => void ({ stack, crm, practice } = await practiceForFaults()), 400_000);

/** The responses that clients got while something was down. */
interface Observations {
  /** References of the participations, users and customers that were answered with 2xx. */
  participations: string[];
  users: string[];
  customers: string[];
  /** Requests without a response, because the gateway itself was down. */
  unanswered: number;
  /** Rounds of requests that succeeded since the last failure. */
  streak: number;
  /** How long the responses with 2xx and those with 503 took. */
  servedMs: number[];
  unavailableMs: number[];
  /** All responses that are neither 2xx nor 503. */
  surprises: string[];
}

/** Runs clients that set up and book continuously, and retry after a 503, while something happens. */
async function whileClientsWork(happen: (record: Observations) => Promise<void>): Promise<Observations> {
  const record: Observations = {
    participations: [],
    users: [],
    customers: [],
    servedMs: [],
    unavailableMs: [],
    unanswered: 0,
    streak: 0,
    surprises: [],
  };
  const working = new AbortController();
  const appointment = await createAppointment(practice, { capacity: 1_000_000 });
  const work = async (): Promise<void> => {
    while (!working.signal.aborted) await playRound(record, appointment);
  };
  const running = Promise.allSettled(Array.from({ length: workers }, work));
  try {
    await waitUntil(() => record.streak >= workers * 3, { what: 'the clients to be at work', timeoutMs: healMs });
    await happen(record);
    record.streak = 0;
    await waitUntil(() => record.streak >= workers * 5, {
      what: 'all requests to go through again',
      timeoutMs: healMs,
    });
  } finally {
    working.abort();
    await running;
  }
  for (const worker of await running) if (worker.status === 'rejected') throw worker.reason;
  return record;
}

async function playRound(record: Observations, appointmentReference: string): Promise<void> {
  const [user, customer, participation] = [`${unique('u')}@test`, `${unique('c')}@test`, `${unique('p')}@test`];
  await persist(record, record.users, user, () =>
    crm.post('/user', { reference: user, email: `${user}.example`, username: user.replace('@', '-'), lastName: 'X' }),
  );
  await persist(record, record.customers, customer, () =>
    crm.post(`${practice.at}/customers`, {
      customerReference: customer,
      providerReference: practice.provider,
      userName: 'X',
    }),
  );
  await persist(record, record.participations, participation, () =>
    crm.post(`${practice.at}/participations`, {
      reference: participation,
      appointmentReference,
      customerReference: customer,
      state: 'BOOKED',
    }),
  );
  record.streak += 1;
}

/** Sends a request until it is answered with 2xx; repeating it is safe (interface 1). */
async function persist(
  record: Observations,
  done: string[],
  reference: string,
  request: () => Promise<Answer>,
): Promise<void> {
  await waitUntil(
    async () => {
      const answer = await request().catch((error: unknown) => noAnswer(record, error));
      if (answer === undefined) return false;
      if (answer.status === 200 || answer.status === 201) {
        record.servedMs.push(answer.durationMs);
        return true;
      }
      record.streak = 0;
      if (answer.status === 503) record.unavailableMs.push(answer.durationMs);
      else record.surprises.push(`${answer.status} ${answer.text}`);
      return false;
    },
    { what: `${reference} to be made`, timeoutMs: healMs },
  );
  done.push(reference);
}

/** The connection was refused or cut. Deviations that the client itself finds in a response are errors of the test. */
function noAnswer(record: Observations, error: unknown): undefined {
  record.streak = 0;
  if (!(error instanceof TypeError)) record.surprises.push(String(error));
  record.unanswered += 1;
}

async function expectNothingLost(record: Observations): Promise<void> {
  expect(record.surprises).toEqual([]);
  for (const durations of [record.servedMs, record.unavailableMs]) {
    // Other work on the machine may delay any of them, but not most.
    expect(durations.filter((ms) => ms >= answerMs).length, durations.join(' ')).toBeLessThanOrEqual(
      durations.length / 2,
    );
  }
  const { body } = await crm.get<{ participations: { reference: string }[] }[]>(`${practice.at}/appointments`);
  const shown = body.flatMap(({ participations }) => participations.map(({ reference }) => reference));
  expect(new Set(shown).size).toBe(shown.length);
  expect(new Set(record.participations).difference(new Set(shown))).toEqual(new Set());
  for (const reference of record.users) expect(await crm.get(path`/user/${reference}`)).toMatchObject({ status: 200 });
  for (const reference of record.customers)
    expect(await crm.get(practice.at + path`/customers/${reference}`)).toMatchObject({ status: 200 });
}

describe('a killed process', timed, () => {
  // A call waits briefly for a service that restarts, so it is possible that no request is affected.
  it.each(['calendar', 'identity', 'customer', 'postgres'] as const)(
    '%s: requests get 503 at worst, it recovers, and nothing is lost',
    async (unit) => {
      const record = await whileClientsWork(() => kill(stack, unit));
      expect(record.unanswered).toBe(0);
      await expectNothingLost(record);
    },
  );

  it('gateway: connections break, the system recovers, and nothing is lost', async () => {
    const record = await whileClientsWork(() => kill(stack, 'gateway'));
    expect(record.unanswered).toBeGreaterThan(0);
    await expectNothingLost(record);
  });

  it.each(['nats', 'notification', 'webhook', 'inbox'] as const)('%s: no request is affected', async (unit) => {
    const record = await whileClientsWork(() => kill(stack, unit));
    expect([record.unavailableMs, record.unanswered]).toEqual([[], 0]);
    await expectNothingLost(record);
  });
});

describe('a hanging process', timed, () => {
  it.each(['calendar', 'customer', 'identity', 'postgres'] as const)(
    '%s: requests needing it get 503 within 2 s and succeed when it resumes',
    async (unit) => {
      const record = await whileClientsWork((soFar) =>
        whileHanging(stack, unit, () =>
          waitUntil(() => soFar.unavailableMs.length >= workers, { what: '503s', timeoutMs: healMs }),
        ),
      );
      expect(record.unanswered).toBe(0);
      await expectNothingLost(record);
    },
  );

  it('notification: only the requests about mails get 503, and they succeed when it resumes', async () => {
    const participation = await createParticipation(practice, await createAppointment(practice, { capacity: 5 }));
    const list = () => crm.get(mailsAt(practice, participation));
    const [mail] = await sentMails(practice, participation);
    await whileHanging(stack, 'notification', async () => {
      for (const answer of await Promise.all([
        list(),
        crm.post(`${mailsAt(practice, participation)}/${mail!.id}/resend`, undefined),
      ])) {
        expect(answer).toMatchObject({ status: 503, body: { code: 'service.unavailable' } });
      }
      expect(await crm.get(practice.at + path`/participations/${participation}`)).toMatchObject({ status: 200 });
    });
    // A resend that was not answered may have had its effect.
    await eventually(async () => expect(await list()).toMatchObject({ status: 200 }));
  });

  it('nats: no request is affected', async () => {
    const record = await whileClientsWork((soFar) =>
      whileHanging(stack, 'nats', () => {
        const before = soFar.participations.length;
        return waitUntil(() => soFar.participations.length > before + 20, {
          what: 'bookings while NATS hangs',
          timeoutMs: healMs,
        });
      }),
    );
    expect([record.unavailableMs, record.unanswered]).toEqual([[], 0]);
    await expectNothingLost(record);
  });
});

describe('a database that has lost its synchronous standby', timed, () => {
  it('is read as long as a new connection leads to it, and not written to', async () => {
    const customer = `${unique('c')}@test`;
    const create = (customerReference: string) =>
      crm.post(`${practice.at}/customers`, { customerReference, providerReference: practice.provider, userName: 'X' });
    const read = () => crm.get(practice.at + path`/customers/${customer}`);
    await untilServed(() => create(customer));
    const reload = 'SELECT pg_reload_conf()';
    // A service learns from new connections that commits wait for a standby.
    const disconnect = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'customer'`;
    await using restored = new AsyncDisposableStack();
    restored.defer(() => asSuperuser(stack, 'ALTER SYSTEM RESET synchronous_standby_names', reload));
    await asSuperuser(stack, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`, reload, disconnect);
    await eventually(async () => {
      const [written, answered] = await Promise.all([create(`${unique('c')}@test`), read()]);
      expect([written.status, answered.status]).toEqual([503, 200]);
      // Not because it was given up.
      expect(written.durationMs).toBeLessThan(500);
    });
    restored.defer(() => asSuperuser(stack, 'ALTER DATABASE customer ALLOW_CONNECTIONS true'));
    await asSuperuser(stack, 'ALTER DATABASE customer ALLOW_CONNECTIONS false');
    await eventually(async () => expect(await read()).toMatchObject({ status: 503 }));
    await restored.disposeAsync();
    await untilServed(() => create(`${unique('c')}@test`));
    expect(await read()).toMatchObject({ status: 200 });
  });
});

describe('a scrape of the metrics', timed, () => {
  it.each(['postgres', 'nats'] as const)('is answered by every service while %s hangs', async (unit) => {
    const scrape = async (service: Service): Promise<string> => {
      const response = await fetch(`${stack.info.operations[service]}/metrics`, {
        signal: AbortSignal.timeout(scrapeMs),
      });
      expect(response.status).toBe(200);
      return response.text();
    };
    const measured = { postgres: 'scheduling_outbox_unsent_events', nats: 'scheduling_consumer_lag_events' }[unit];
    const isKnown = async (): Promise<boolean> => sumSamples(await scrape('calendar'), measured) !== undefined;
    await waitUntil(isKnown, { what: `${measured} to be known`, timeoutMs: healMs });
    await whileHanging(stack, unit, async () => {
      const texts = await Promise.all(services.map(scrape));
      for (const text of texts) expect(sumSamples(text, 'process_start_time_seconds')).toBeGreaterThan(0);
      // Unknown at the moment, which is not the same as zero.
      for (const text of texts) expect(sumSamples(text, measured)).toBeUndefined();
    });
    await waitUntil(isKnown, { what: `${measured} to be known again`, timeoutMs: healMs });
  });
});

describe('a booking made while something it depends on is down', timed, () => {
  // An event that was delivered to a process as it died is redelivered after the consumers' acknowledgement timeout of
  // 15 s.
  it.each(['nats', 'notification'] as const)('is mailed when %s is running again after it was killed', async (unit) => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    await kill(stack, unit);
    await createParticipation(own, appointment);
    expect(await waitForMails(own.customerEmail, 1, stack.info)).toHaveLength(1);
  });

  it.each(['nats', 'notification', 'inbox'] as const)('is mailed when %s resumes', async (unit) => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own, { capacity: 2 });
    await whileHanging(stack, unit, async () => {
      await createParticipation(own, appointment);
      await createParticipation(own, appointment, { state: 'REQUESTED' });
    });
    expect((await waitForMails(own.customerEmail, 2, stack.info)).map(withoutTime).sort()).toEqual([
      'Your booking: Haircut',
      'Your request: Haircut',
    ]);
  });
});

describe('a reminder that becomes due while something it depends on is down', timed, () => {
  const [soonMs, leastLeftMs] = [10_000, 15 * 60_000];
  const start = new Date('2031-03-03T09:00Z');
  const before = (minutes: number): Date => new Date(start.getTime() - minutes * 60_000);

  interface Reminded {
    practice: Practice;
    /** A reminder of it is due when the clock is set to 45 minutes before the start. */
    booked: string;
    /** The same, but soon after that it is too late. */
    bookedEarlier: string;
  }

  async function prepare(): Promise<Reminded> {
    const own = await createPractice(await createCrm({ sandbox: true }, stack.info));
    await setClock(own, before(180));
    expect(await own.crm.put(`${own.at}/booking-rules`, { reminders: [60] })).toMatchObject({ status: 200 });
    const book = async (at: Date) =>
      createParticipation(
        own,
        await createAppointment(own, {
          start: at.toISOString(),
          end: new Date(at.getTime() + 3_600_000).toISOString(),
        }),
      );
    const earlier = new Date(before(45).getTime() + leastLeftMs + soonMs);
    return { practice: own, booked: await book(start), bookedEarlier: await book(earlier) };
  }

  async function setClock({ crm: sandbox }: Practice, now: Date): Promise<void> {
    expect(await sandbox.put('/sandbox/clock', { now: now.toISOString() })).toMatchObject({ status: 200 });
  }

  /** The ids of the events, as soon as there is one. */
  const writtenReminders = ({ practice: { crm: sandbox } }: Reminded): Promise<string[]> =>
    waitUntil(
      async () => {
        const rows = await query<{ id: string }>(
          'calendar',
          "SELECT id FROM outbox WHERE subject LIKE '%.participation-reminder-due' AND data ->> 'crmId' = $1",
          [sandbox.crmId],
          stack.info,
        );
        return rows.length > 0 ? rows.map(({ id }) => id) : undefined;
      },
      { what: 'the reminders to be due', timeoutMs: healMs },
    );

  const passed = async ({ practice: { crm: sandbox } }: Reminded, time: Date): Promise<void> => {
    const hasPassed = async (): Promise<boolean> => {
      const { body } = await sandbox.get<{ clock: { now: string } }>('/sandbox/clock');
      return new Date(body.clock.now) > time;
    };
    await waitUntil(hasPassed, { what: 'the time to pass', timeoutMs: healMs, intervalMs: 200 });
  };

  /** How many reminders of each booking have been sent once all mails of the CRM have been. */
  async function countSent({ practice: own, booked, bookedEarlier }: Reminded, eventIds: string[]): Promise<number[]> {
    const isDone = async (): Promise<boolean> => {
      const [row] = await query<{ done: boolean }>(
        'notification',
        `SELECT (SELECT count(*) FROM inbox WHERE event_id = ANY ($1)) = cardinality($1::uuid[])
            AND NOT EXISTS (SELECT FROM unwritten_mail WHERE crm_id = $2)
            AND NOT EXISTS (SELECT FROM mail WHERE crm_id = $2 AND state = 'pending') AS done`,
        [eventIds, own.crm.crmId],
        stack.info,
      );
      return row!.done;
    };
    await waitUntil(isDone, { what: 'the mails', timeoutMs: healMs });
    const counts = [booked, bookedEarlier].map(async (participation) => {
      const { body } = await untilServed(() => own.crm.get<ParticipationMail[]>(mailsAt(own, participation)));
      return body.filter(({ template, state }) => template === 'booking-reminder' && state === 'SENT').length;
    });
    return Promise.all(counts);
  }

  it.each(['nats', 'notification'] as const)(
    'is sent once when %s is running again after it was killed',
    async (unit) => {
      const reminded = await prepare();
      await kill(stack, unit);
      await setClock(reminded.practice, before(45));
      const eventIds = await writtenReminders(reminded);
      const [ofBooked] = await countSent(reminded, eventIds);
      expect(ofBooked).toBe(1);
    },
  );

  it.each(['nats', 'notification'] as const)('is sent once when %s resumes, unless it is too late', async (unit) => {
    const reminded = await prepare();
    let eventIds: string[] = [];
    await whileHanging(stack, unit, async () => {
      await setClock(reminded.practice, before(45));
      eventIds = await writtenReminders(reminded);
      await passed(reminded, new Date(before(45).getTime() + soonMs));
    });
    expect(eventIds).toHaveLength(2);
    expect(await countSent(reminded, eventIds)).toEqual([1, 0]);
  });
});

describe('the event feed', timed, () => {
  it.each(['webhook', 'calendar', 'customer'] as const)(
    'gets 503 within 2 s while %s hangs, and is complete when it resumes',
    async (unit) => {
      const own = await createCrm({}, stack.info);
      const practiceOfOwn = await createPractice(own);
      const customer = practiceOfOwn.at + path`/customers/${practiceOfOwn.customer}`;
      await createAppointment(practiceOfOwn);
      const before = await waitForFeed(own, 2);
      await whileHanging(stack, unit, async () => {
        await eventually(async () => {
          const { status, durationMs } = await own.get('/events');
          expect(status).toBe(503);
          expect(durationMs).toBeLessThan(answerMs);
        });
      });
      await waitUntil(async () => (await own.put(customer, { note: 'after' })).status === 200, {
        what: 'the change',
        timeoutMs: healMs,
      });
      expect(await waitForFeed(own, 3)).toMatchObject([...before, { type: 'customer.changed' }]);
    },
  );

  it('has what happened while webhook was dead', async () => {
    const own = await createCrm({}, stack.info);
    await kill(stack, 'webhook');
    const practiceOfOwn = await createPractice(own);
    await createParticipation(practiceOfOwn, await createAppointment(practiceOfOwn));
    const types = (await waitUntil(() => waitForFeed(own, 3), { what: 'the feed', timeoutMs: healMs })).map(
      ({ type }) => type,
    );
    expect(types.toSorted()).toEqual(['appointment.created', 'customer.created', 'participation.created']);
  });
});

describe('a revoked key', timed, () => {
  type During = (happen: () => Promise<void>) => Promise<void>;
  const outages: Record<string, During> = {
    'was killed': (happen) => kill(stack, 'nats').then(happen),
    hangs: (happen) => whileHanging(stack, 'nats', happen),
  };

  it.each(Object.entries(outages))('stops working within 5 s although NATS %s (interface 5)', async (_, during) => {
    const other = await createCrm({}, stack.info);
    using admin = createAdminClient(stack.info.admin.identity);
    const { apiKeys } = await admin.listKeys({ crmId: other.crmId });
    const status = async (): Promise<number> => (await other.get('/user/nobody%40test')).status;
    expect(await status()).toBe(404);
    await during(async () => {
      await admin.revokeKey({ prefix: apiKeys[0]!.prefix });
      await waitUntil(async () => (await status()) === 401, { what: 'the key to be refused', timeoutMs: 5_000 });
    });
  });
});

describe('after all of it', () => {
  it('a fresh setup succeeds, including the mail', async () => {
    const other = await createCrm({}, stack.info);
    const own = await createPractice(other);
    await createParticipation(own, await createAppointment(own));
    expect(await waitForMails(own.customerEmail, 1, stack.info)).toHaveLength(1);
  });
});
