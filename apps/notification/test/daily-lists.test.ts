import { ParticipationState, SandboxClockServiceService } from '@scheduling/contracts/calendar/v1';
import type { DailyListDue } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { callFunction } from '@scheduling/postgres';
import { createClient } from '@scheduling/rpc';
import { nameUuid } from '@scheduling/runtime';
import { eventually, longTimeout } from '@scheduling/testing';
import { sql, type Transaction } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { NotificationSchema } from '../src/db/schema.ts';
import { eraseMails } from '../src/erasure/erase-customer.ts';
import { lockCustomer } from '../src/erasure/lock-customer.ts';
import {
  crmId,
  type NotificationUnderTest,
  processed,
  providerReference,
  publishEvent,
  setUpProvider,
  startNotification,
} from './notification-under-test.ts';

const { BOOKED, REQUESTED, CANCELED } = ParticipationState;
const owned = { crmId, providerReference };
/** Its provider has no address, so its owner is told. */
const addressless = { crmId: 'addressless', providerReference };
const sandbox = { crmId: 'sandbox', providerReference };
const desk = 'desk@yoga.example';
const owner = 'owner@addressless.example';

let stack: NotificationUnderTest;
let names = 0;
/** Each test has a day of its own. */
let day = '';

beforeAll(async () => {
  // No hour ends during the tests.
  stack = await startNotification({
    timings: {
      quotaWindowMs: 100 * 365 * 24 * 3_600_000,
      firstRetryMs: 50,
      pollMs: 50,
      longestRetryMs: 100,
      firstPauseMs: 20,
      longestPauseMs: 50,
    },
  });
  await setUpProvider(stack, addressless.crmId, { hasAddress: false });
  await setUpProvider(stack, sandbox.crmId, { sandbox: true });
}, 180_000);
afterAll(() => stack?.[Symbol.asyncDispose]());
beforeEach(() => {
  stack.smtp.mails.length = 0;
  stack.smtp.trouble = () => undefined;
  day = Temporal.PlainDate.from('2030-07-01')
    .add({ days: (names += 1) })
    .toString();
});

interface Appointment {
  /** By the clock in Berlin, which is two hours ahead. */
  time?: string;
  description?: string;
  embedded?: string[];
}

async function createAppointment(
  { time = '10:00', description = 'Yoga', embedded = [] }: Appointment = {},
  key = owned,
): Promise<string> {
  const reference = `appointment-${(names += 1)}`;
  const start = Temporal.PlainDateTime.from(`${day}T${time}`);
  await stack.appointments.createAppointment({
    ...key,
    reference,
    start: start.toString(),
    end: start.add({ hours: 1 }).toString(),
    capacity: 1_000,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description,
    address: { kind: { $case: 'text', value: 'Hall 2' } },
    participations: embedded.map((name, index) => ({
      reference: `${reference}-${index}`,
      name,
      email: `${name.toLowerCase()}@example.com`,
      state: BOOKED,
    })),
  });
  return reference;
}

interface Booked {
  key: typeof owned;
  reference: string;
  name: string;
  email: string;
  customerId: string;
}

async function book(appointmentReference: string, state: ParticipationState = BOOKED, key = owned): Promise<Booked> {
  const reference = `person-${(names += 1)}`;
  const email = `${reference}@example.com`;
  const { customer } = await stack.customers.createCustomer({
    ...key,
    customerReference: reference,
    userName: `Person ${names}`,
    email,
    mobile: '+49 171 2345678',
    language: 'en',
  });
  await stack.participations.createParticipation({
    ...key,
    reference,
    appointmentReference,
    customerReference: reference,
    state,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: false,
  });
  return { key, reference, name: customer!.userName, email, customerId: customer!.id };
}

const erase = ({ key, reference }: Booked) =>
  stack.customers.deleteCustomer({ ...key, customerReference: reference, ignoreFutureAppointments: true });

async function providerOf(key: typeof owned): Promise<string> {
  const { provider } = await stack.identity.getProvider({
    crmId: key.crmId,
    key: { $case: 'reference', value: key.providerReference },
  });
  return provider!.id;
}

/** Calendar says that the list of the day is due, and notification has heard it. */
async function listDue(key = owned, changes: Partial<DailyListDue> = {}): Promise<void> {
  const event = {
    crmId: key.crmId,
    providerId: await providerOf(key),
    date: day,
    expiresAt: `${day}T22:00:00Z`,
    ...changes,
  };
  const definition = events.dailyListDue;
  await processed(stack, definition, await publishEvent(stack, randomUUID(), definition, definition.encode(event)));
}

const mailsTo = (address: string) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(address)).map(({ parsed }) => parsed);

/** When everything that was to be written and sent has been. */
async function settled(): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql<{ waiting: number }>`
      SELECT (SELECT count(*) FROM provider_notice WHERE state = 'pending')::int + (SELECT count(*) FROM mail WHERE state = 'pending')::int AS waiting`.execute(
      stack.database.kysely,
    );
    expect(rows[0]!.waiting).toBe(0);
  });
}

async function lastMailsTo(address: string, count: number) {
  await eventually(() => expect(mailsTo(address)).toHaveLength(count));
  await settled();
  expect(mailsTo(address)).toHaveLength(count);
  return mailsTo(address);
}

/** The mail server refuses all until the end of the test, or until the next call. */
function refuseMails(isRefusing = true): void {
  stack.smtp.trouble = () => (isRefusing ? { at: 'rcpt', code: 450 } : undefined);
}

const waitingLists = (crm = crmId) =>
  stack.database.kysely
    .selectFrom('mail')
    .select(['id', 'content'])
    .where('crmId', '=', crm)
    .where('template', '=', 'provider-day')
    .where('state', '=', 'pending')
    .execute();

const entries = (crm = crmId) =>
  stack.database.kysely
    .selectFrom('providerNotice')
    .select(['customerId', 'listId', 'day'])
    .where('crmId', '=', crm)
    .where('state', '=', 'listed')
    .where('day', '=', day)
    .execute();

/** What the mail server has refused is due at once. */
async function sendAgain(): Promise<void> {
  refuseMails(false);
  await stack.database.kysely
    .updateTable('mail')
    .set({ dueAt: sql<Date>`now()` })
    .where('state', '=', 'pending')
    .execute();
}

describe('the list of a day', () => {
  it('has the appointments in their order, with everybody who is booked or requested, and how to reach them', async () => {
    const late = await createAppointment({ time: '18:00', description: 'Late yoga' });
    const early = await createAppointment({ time: '08:30', description: 'Early yoga', embedded: ['Grace'] });
    await createAppointment({ time: '12:00', description: 'Nobody' });
    const [booked, requested, cancelled] = [await book(late), await book(late, REQUESTED), await book(early)];
    await stack.participations.updateParticipation({
      ...owned,
      participationReference: cancelled.reference,
      state: CANCELED,
      ignoreCapacity: false,
      sendMails: false,
    });
    await stack.appointments.cancelAppointment({ ...owned, appointmentReference: await createAppointment() });
    await listDue();
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.subject).toMatch(/^Heute, [A-Z]\w+, \d+\. Juli: 2 Buchungen, 1 Anfrage – Yoga & Co$/);
    expect(mail!.replyTo).toBeUndefined();
    expect(mail!.text!.replaceAll(/[^\S\n]/g, ' ')).toContain(`
  08:30–09:30 Uhr
  Early yoga
  Hall 2
  Grace, grace@example.com

  12:00–13:00 Uhr
  Nobody
  Hall 2
  Keine Buchungen

  18:00–19:00 Uhr
  Late yoga
  Hall 2
  ${booked.name}, ${booked.email}, +49 171 2345678
  ${requested.name} (Anfrage), ${requested.email}, +49 171 2345678
`);
    for (const part of ['08:30', 'Grace', 'Hall 2', 'Keine Buchungen', booked.name, `${requested.name} (Anfrage)`])
      expect(mail!.html).toContain(part);
    expect(mail!.html).toContain('href="tel:+491712345678"');
    expect(mail!.html).not.toContain(cancelled.name);
  });

  it('is of the calendar as it is when it is written, and none if nothing is left', async () => {
    await stack.appointments.cancelAppointment({ ...owned, appointmentReference: await createAppointment() });
    await listDue();
    await settled();
    expect(mailsTo(desk)).toEqual([]);
  });

  it('is one mail, however often it is due', async () => {
    const booked = await book(await createAppointment());
    await listDue();
    await lastMailsTo(desk, 1);
    await listDue();
    await lastMailsTo(desk, 1);
    await erase(booked);
    await eventually(async () => expect(await entries()).toEqual([]));
    await listDue();
    await lastMailsTo(desk, 1);
  });

  it('goes to the owner of a provider without an address, and not to the contact', async () => {
    await book(await createAppointment({}, addressless), BOOKED, addressless);
    await listDue(addressless);
    await lastMailsTo(owner, 1);
    // A mail to somebody whom the test before has erased may come later.
    const recipients = stack.smtp.mails.flatMap((mail) => mail.recipients);
    expect(recipients.filter((address) => !/^person-\d+@/.test(address))).toEqual([owner]);
  });

  it('does not count for the mails of an hour, and is sent although there were too many', async () => {
    const booked = await book(await createAppointment());
    await stack.bookings.updateBookingRules({ ...owned, notifyProvider: true, noHorizon: false });
    onTestFinished(async () => {
      await stack.bookings.updateBookingRules({ ...owned, notifyProvider: false, noHorizon: false });
    });
    await stack.participations.updateParticipation({
      ...owned,
      participationReference: booked.reference,
      state: CANCELED,
      ignoreCapacity: false,
      sendMails: true,
    });
    await lastMailsTo(desk, 1);
    const counts = stack.database.kysely.selectFrom('providerMailCount').select('mails');
    await stack.database.kysely.updateTable('providerMailCount').set({ mails: 60 }).execute();
    await listDue();
    await lastMailsTo(desk, 2);
    expect(await counts.execute()).toEqual([{ mails: 60 }]);
  });

  it('shows 1,000 bookings, and says how many more there are', { timeout: 120_000 }, async () => {
    const embedded = Array.from({ length: 404 }, (_, index) => `Guest${index}`);
    for (const time of ['08:00', '09:00', '10:00']) await createAppointment({ time, embedded });
    await listDue();
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.subject).toContain('1212 Buchungen');
    expect(mail!.text!.match(/Guest\d+, /g)).toHaveLength(1_000);
    expect(mail!.text).toContain('212 weitere');
    expect(await entries()).toHaveLength(1_000);
  });

  it('is dropped when the day is over, written or not', async () => {
    await book(await createAppointment());
    await listDue(owned, { expiresAt: new Date(Date.now() - 1_000).toISOString() });
    await settled();
    expect(mailsTo(desk)).toEqual([]);
    refuseMails();
    await listDue(owned, { expiresAt: new Date(Date.now() + 5_000).toISOString() });
    await eventually(async () => expect(await waitingLists()).toHaveLength(1));
    await settled();
    const { lastError } = await stack.database.kysely
      .selectFrom('mail')
      .select('lastError')
      .where('aboutId', '=', nameUuid(await providerOf(owned), `day ${day} PROVIDER`))
      .executeTakeFirstOrThrow();
    expect(lastError).toBe('expired');
  });

  it('is left by a version of the service that does not know it to one that does', async () => {
    const { kysely } = stack.database;
    const providerId = await providerOf(owned);
    const [id, lease] = [randomUUID(), randomUUID()];
    await kysely
      .insertInto('providerNotice')
      .values({
        crmId,
        id,
        eventId: id,
        aboutId: id,
        providerId,
        lease,
        day,
        recipient: 'PROVIDER',
        template: 'provider-day',
        version: 0,
        actor: 'service',
        requestId: 'test',
        expiresAt: new Date(`${day}T22:00:00Z`),
        dueAt: new Date(Date.now() + 60_000),
      })
      .execute();
    await book(await createAppointment());
    const request = { crmId, id, lease, quota: 60, windowSeconds: 3_600 };
    expect(await callFunction(kysely, { name: 'store_provider_mail', request, locks: '' })).toBe(false);
    await lastMailsTo(desk, 1);
  });
});

describe('the list of a day and the erasure of a person', () => {
  /** Two people, and a list with both that waits for the mail server. */
  async function listTwo(key = owned): Promise<[Booked, Booked]> {
    const appointmentReference = await createAppointment({}, key);
    const people: [Booked, Booked] = [
      await book(appointmentReference, BOOKED, key),
      await book(appointmentReference, BOOKED, key),
    ];
    refuseMails();
    await listDue(key);
    await eventually(async () =>
      expect(await waitingLists(key.crmId)).toMatchObject([
        { content: { text: expect.stringContaining(people[0].email) } },
      ]),
    );
    return people;
  }

  it('names nobody who is erased while it waits for the mail server', async () => {
    const [erased, kept] = await listTwo();
    await erase(erased);
    await eventually(async () =>
      expect(await waitingLists()).toMatchObject([{ content: { text: expect.not.stringContaining(erased.email) } }]),
    );
    expect((await entries()).map(({ customerId }) => customerId)).toEqual([kept.customerId]);
    await sendAgain();
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.subject).toContain('1 Buchung ');
    expect(mail!.text).toContain(kept.email);
    expect(mail!.text).not.toContain(erased.name);
  });

  it('has the appointment although all its people are erased', async () => {
    const people = await listTwo();
    for (const person of people) await erase(person);
    await eventually(async () => expect(await entries()).toEqual([]));
    await eventually(async () =>
      expect(await waitingLists()).toMatchObject([{ content: { text: expect.stringContaining('Keine Buchungen') } }]),
    );
    await sendAgain();
    const [mail] = await lastMailsTo(desk, 1);
    for (const { name } of people) expect(mail!.text).not.toContain(name);
  });

  it('names nobody whose address is erased, who was embedded in an appointment', async () => {
    await createAppointment({ embedded: ['Ada', 'Grace'] });
    refuseMails();
    await listDue();
    await eventually(async () => expect(await waitingLists()).toHaveLength(1));
    await stack.customers.eraseAddress({ crmId, email: 'ada@example.com' });
    await eventually(async () =>
      expect(await waitingLists()).toMatchObject([{ content: { text: expect.not.stringContaining('Ada') } }]),
    );
    await sendAgain();
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.text).toContain('Grace');
    expect(mail!.text).not.toContain('Ada');
  });

  it.each([1, 2, 3, 4, 5])('names nobody who is erased at the moment when it is written (round %i)', async () => {
    const appointmentReference = await createAppointment();
    const people: Booked[] = [];
    for (let count = 0; count < 8; count += 1) people.push(await book(appointmentReference));
    const [erased, kept] = [people.slice(0, 4), people.slice(4)];
    refuseMails();
    await Promise.all([listDue(), ...erased.map((person) => erase(person))]);
    await eventually(async () => {
      const lists = await waitingLists();
      expect(lists).toHaveLength(1);
      for (const { email } of kept) expect(lists[0]!.content!.text).toContain(email);
      for (const { email } of erased) expect(lists[0]!.content!.text).not.toContain(email);
    });
    expect(new Set((await entries()).map(({ customerId }) => customerId))).toEqual(
      new Set(kept.map(({ customerId }) => customerId)),
    );
    await sendAgain();
    const [mail] = await lastMailsTo(desk, 1);
    for (const { name } of erased) expect(mail!.text).not.toContain(`${name},`);
  });

  /** A lock for which somebody waits for so long that it is not given up any more. */
  async function isWaitedFor(minimumMs = 200): Promise<void> {
    await eventually(async () => {
      const { rows } = await sql`
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND waitstart < clock_timestamp() - make_interval(secs => ${minimumMs / 1_000})`.execute(
        stack.database.kysely,
      );
      expect(rows).toHaveLength(1);
    });
  }

  it('is not stored with somebody whose erasure is being committed', async () => {
    const appointmentReference = await createAppointment();
    const [erased, kept] = [await book(appointmentReference), await book(appointmentReference)];
    refuseMails();
    // Calendar knows the person to the end, as after a restore.
    await stack.database.transaction(async (tx) => {
      await beginErasure(tx, erased);
      await listDue();
      await isWaitedFor();
    });
    await eventually(async () =>
      expect(await waitingLists()).toMatchObject([{ content: { text: expect.stringContaining(kept.email) } }]),
    );
    await sendAgain();
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.text).toContain(kept.email);
    expect(mail!.text).not.toContain(erased.name);
  });

  async function beginErasure(tx: Transaction<NotificationSchema>, { key, customerId }: Booked): Promise<void> {
    await lockCustomer(tx, { crmId: key.crmId, customerId });
    await tx.insertInto('erasedCustomer').values({ crmId: key.crmId, customerId }).execute();
  }

  it('is found by an erasure that begins while it is being stored', async () => {
    const appointmentReference = await createAppointment({}, addressless);
    const [erased, kept] = [
      await book(appointmentReference, BOOKED, addressless),
      await book(appointmentReference, BOOKED, addressless),
    ];
    refuseMails();
    let erasure = Promise.resolve(false);
    await stack.database.transaction(async (tx) => {
      const { rows } = await sql<{ userId: string }>`
        SELECT user_id FROM mail WHERE crm_id = ${addressless.crmId} AND template = 'provider-day' LIMIT 1`.execute(tx);
      // The last lock of whoever stores it.
      await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`user ${addressless.crmId} ${rows[0]!.userId}`}, 0))`.execute(
        tx,
      );
      await listDue(addressless);
      await isWaitedFor();
      erasure = eraseMails(stack.database, { crmId: addressless.crmId, customerId: erased.customerId });
      erasure.catch(() => undefined);
      await Promise.race([erasure, isBlocked()]);
    });
    await erasure;
    await eventually(async () =>
      expect(await waitingLists(addressless.crmId)).toMatchObject([
        { content: { text: expect.stringContaining(kept.email) } },
      ]),
    );
    await sendAgain();
    const [mail] = await lastMailsTo(owner, 1);
    expect(mail!.text).toContain(kept.email);
    expect(mail!.text).not.toContain(erased.name);
  });

  /** Whoever stores the list waits, and so does the erasure. */
  async function isBlocked(): Promise<void> {
    await eventually(async () => {
      const { rows } = await sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`.execute(
        stack.database.kysely,
      );
      expect(rows).toHaveLength(2);
    });
  }
});

describe('the list of a day in a sandbox', () => {
  const kept = async () =>
    (await stack.sandboxMails.listSandboxMails({ crmId: sandbox.crmId, limit: 20 })).mails.filter(
      ({ template }) => template === 'provider-day',
    );

  it('is written when its hour comes by the clock, once, and dropped with a person who is erased', async () => {
    using clocks = createClient(SandboxClockServiceService, 'calendar', stack.services.calendar.address, longTimeout);
    const setClock = (time: string) =>
      clocks.setSandboxClock({
        crmId: sandbox.crmId,
        now: new Date(Temporal.PlainDateTime.from(`${day}T${time}`).toZonedDateTime('Europe/Berlin').epochMilliseconds),
      });
    const booked = await book(await createAppointment({ time: '15:00' }, sandbox), BOOKED, sandbox);
    await setClock('06:00');
    await stack.bookings.updateBookingRules({ ...sandbox, noHorizon: false, dailyList: 7 });
    await setClock('07:10');
    const [mail] = await eventually(async () => {
      const mails = await kept();
      expect(mails).toHaveLength(1);
      return mails;
    });
    expect(mail!.to).toMatchObject({ address: desk });
    expect(mail!.text).toContain(booked.email);
    await erase(booked);
    await eventually(async () => expect(await kept()).toEqual([]));
    // What calendar would say if the clock were set back to the day after another one.
    await listDue(sandbox);
    await settled();
    expect(await kept()).toEqual([]);
  });
});
