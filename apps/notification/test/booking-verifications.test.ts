import { TimeslotState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { nameUuid } from '@scheduling/runtime';
import { eventually, patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  countAddressErasures,
  recordAddressErasure,
  requireNoAddressErasure,
} from '../src/erasure/address-erasures.ts';
import { eraseMailsTo } from '../src/erasure/erase-address.ts';
import { failures } from './failures.ts';
import {
  crmId,
  type NotificationUnderTest,
  processed,
  providerReference,
  publishEvent,
  setUpProvider,
  startNotification,
} from './notification-under-test.ts';

const owned = { crmId, providerReference };
const sandbox = { crmId: 'sandbox', providerReference };
const requestable = { crmId: 'requestable', providerReference };
const price = { value: 45, currency: 'EUR' };

let stack: NotificationUnderTest;
let names = 0;
const providerIds = new Map<string, string>();

beforeAll(async () => {
  stack = await startNotification({
    timings: { firstRetryMs: 50, pollMs: 50, longestRetryMs: 100, firstPauseMs: 20, longestPauseMs: 50 },
  });
  await setUpProvider(stack, sandbox.crmId, { sandbox: true });
  await setUpProvider(stack, requestable.crmId);
  await openPage(owned);
  await openPage(sandbox);
  await openPage(requestable, { confirmation: 'CONFIRMATION_REQUESTED' });
}, 180_000);
afterAll(() => stack?.[Symbol.asyncDispose]());
beforeEach(() => {
  stack.smtp.trouble = () => undefined;
});

/** What is booked on it has to be confirmed by a mail, and a person can have two bookings. */
async function openPage(key: typeof owned, rules: { confirmation?: 'CONFIRMATION_REQUESTED' } = {}): Promise<void> {
  const offer = {
    productReference: 'massage',
    name: 'Massage',
    duration: 30,
    price,
    resources: [{ resourceReference: 'room', name: 'Room' }],
  };
  const { rules: stored } = await stack.bookings.updateBookingRules({
    ...key,
    ...rules,
    noHorizon: true,
    page: true,
    verifyEmail: true,
    maxPerPerson: 2,
    offers: { offers: [offer] },
  });
  providerIds.set(key.crmId, stored!.providerId);
  const timeslot = {
    reference: 'monday',
    resourceReference: 'room',
    start: '2030-07-01T10:00',
    end: '2030-07-01T16:00',
    raster: 30,
    defaultCapacity: 50,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    address: { kind: { $case: 'text' as const, value: 'Hall 2' } },
  };
  await patiently(() => stack.timeslots.createTimeslots({ ...key, timeslots: [timeslot] }));
}

interface Visitor {
  email: string;
  language: string;
}

function newVisitor(language = 'en'): Visitor {
  return { email: `visitor-${(names += 1)}@example.com`, language };
}

/** At 10:00 in Berlin, unless stated otherwise. */
async function bookOnPage(visitor: Visitor, { time = '10:00', key = owned } = {}): Promise<void> {
  const { pending } = await stack.pages.bookPageTime({
    providerId: providerIds.get(key.crmId)!,
    offer: 'massage',
    resourceReference: 'room',
    start: new Date(`2030-07-01T${time}:00+02:00`),
    choice: randomUUID(),
    price,
    name: 'Ada Lovelace',
    ...visitor,
    stepUp: false,
  });
  expect(pending).toBe(true);
}

const mailsTo = ({ email }: Visitor) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map(({ parsed }) => parsed);

async function lastMailTo(visitor: Visitor, count = 1) {
  await eventually(() => expect(mailsTo(visitor)).toHaveLength(count));
  return mailsTo(visitor).at(-1)!;
}

const waitingFor = ({ email }: Visitor) =>
  stack.database.kysely
    .selectFrom('mail')
    .selectAll()
    .where('recipient', '=', email)
    .where('state', '=', 'pending')
    .execute();

async function waitingMailTo(visitor: Visitor) {
  return eventually(async () => {
    const [mail] = await waitingFor(visitor);
    expect(mail).toBeDefined();
    return mail!;
  });
}

const rowAbout = (pendingBookingId: string) =>
  stack.database.kysely.selectFrom('mail').selectAll().where('aboutId', '=', pendingBookingId).execute();

const newestRow = () =>
  stack.database.kysely.selectFrom('mail').selectAll().orderBy('createdAt', 'desc').limit(1).executeTakeFirstOrThrow();

function tokenIn(text: string | undefined): string {
  return /^https:\/\/page\.example\/book\/confirm\/([\w.-]+)$/m.exec(text!)![1]!;
}

async function confirm(text: string | undefined, time = '10:00'): Promise<void> {
  await stack.pages.confirmPendingBooking({
    token: tokenIn(text),
    resourceReference: 'room',
    start: new Date(`2030-07-01T${time}:00+02:00`),
    price,
  });
}

/** As calendar does, and once notification has processed it. */
async function request(pendingBookingId: string, eventId: string = randomUUID()): Promise<void> {
  const definition = events.bookingVerificationRequested;
  const payload = definition.encode({ crmId, pendingBookingId });
  await processed(stack, definition, await publishEvent(stack, eventId, definition, payload));
}

const refuseMails = (): void => {
  stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
};

async function eraseAddress(email: string): Promise<void> {
  const { erasure } = await stack.customers.eraseAddress({ crmId, email });
  await eventually(async () => {
    const answer = await stack.customers.getAddressErasure({ crmId, erasureId: erasure!.id });
    expect(answer.erasure!.completedAt).toBeInstanceOf(Date);
  });
}

describe('what is booked on a page that demands it', () => {
  it('is confirmed by the link in a mail, which says that nothing is booked yet', async () => {
    const visitor = newVisitor();
    const before = Date.now();
    await bookOnPage(visitor);
    const mail = await lastMailTo(visitor);
    expect(mail.subject).toBe('Please confirm: Mon, 1 Jul 2030, 10:00 – Massage');
    expect(mail.from!.text).toContain('Yoga & Co via Studio');
    expect(mail.replyTo!.text).toContain('desk@yoga.example');
    expect(mail.text).toContain('Nothing is booked yet.');
    expect(mail.text).toContain('\n  Hall 2\n  Price: €45.00\n');
    expect(mail.attachments).toEqual([]);
    const row = await newestRow();
    expect(row).toMatchObject({ template: 'booking-verification', customerId: null, userId: null, state: 'sent' });
    expect(row).toMatchObject({ providerId: providerIds.get(crmId), content: null, recipient: null });
    expect((row.expiresAt!.getTime() - before) / 60_000).toBeCloseTo(30, 0);
    await confirm(mail.text);
    expect((await lastMailTo(visitor, 2)).text).toMatch(/^Your booking is confirmed\n/);
  });

  it('is a request, in the language of the page, if the provider has to confirm it', async () => {
    const visitor = newVisitor('de');
    await bookOnPage(visitor, { key: requestable });
    const mail = await lastMailTo(visitor);
    expect(mail.text).toMatch(/^Bitte bestätigen Sie Ihre Anfrage\n/);
    await confirm(mail.text);
    expect((await lastMailTo(visitor, 2)).text).toMatch(/^Ihre Anfrage ist angekommen\n/);
  });

  it('is not possible for somebody who has as many bookings as the rules permit, and only the mail says so', async () => {
    const visitor = newVisitor();
    for (const [index, time] of ['10:00', '11:00'].entries()) {
      await bookOnPage(visitor, { time });
      await confirm((await lastMailTo(visitor, 2 * index + 1)).text, time);
      await lastMailTo(visitor, 2 * index + 2);
    }
    await bookOnPage(visitor, { time: '12:00' });
    const mail = await lastMailTo(visitor, 5);
    expect(mail.subject).toMatch(/^Not booked: .*, 12:00 – Massage$/);
    expect(mail.text).toContain('one person can have 2 upcoming bookings');
    expect(`${mail.text}${String(mail.html)}`).not.toContain('page.example');
    expect(await newestRow()).toMatchObject({ template: 'booking-limit', customerId: null });
  });
});

describe('the mail about a pending booking', () => {
  it('is one, whatever says that it is due, also if the inbox has forgotten it', async () => {
    const visitor = newVisitor();
    await bookOnPage(visitor);
    await lastMailTo(visitor);
    const { aboutId, eventId } = await newestRow();
    expect(eventId).toBe(nameUuid(aboutId, 'verification'));
    const requestId = randomUUID();
    await request(aboutId, requestId);
    await stack.database.kysely.deleteFrom('inbox').execute();
    await request(aboutId, requestId);
    // The person has too many by now, of which another mail would tell.
    await stack.bookings.updateBookingRules({ ...owned, noHorizon: false, maxPerPerson: 1 });
    onTestFinished(async () => {
      await stack.bookings.updateBookingRules({ ...owned, noHorizon: false, maxPerPerson: 2 });
    });
    await confirm(mailsTo(visitor)[0]!.text);
    await lastMailTo(visitor, 2);
    await request(aboutId);
    expect(await rowAbout(aboutId)).toMatchObject([{ template: 'booking-verification' }]);
  });

  it('is none if calendar does not know it any more', async () => {
    const pendingBookingId = randomUUID();
    await request(pendingBookingId);
    expect(await rowAbout(pendingBookingId)).toEqual([]);
    expect((await stack.deadLetters.listDeadLetters({})).deadLetters).toEqual([]);
  });

  it('is dropped, and reported with its provider, when its link does not work any more', async () => {
    refuseMails();
    const visitor = newVisitor();
    await bookOnPage(visitor);
    const { id, aboutId } = await waitingMailTo(visitor);
    await stack.database.kysely.updateTable('mail').set({ expiresAt: new Date() }).where('id', '=', id).execute();
    await eventually(async () =>
      expect(await rowAbout(aboutId)).toMatchObject([
        { state: 'failed', lastError: 'expired', content: null, recipient: null },
      ]),
    );
    expect(await failures(stack.database)).toContainEqual({
      crmId,
      mailId: id,
      aboutId,
      template: 'booking-verification',
      providerId: providerIds.get(crmId),
      customerId: undefined,
    });
  });

  it('is kept in a sandbox, where its link works', async () => {
    const visitor = newVisitor();
    await bookOnPage(visitor, { key: sandbox });
    const kept = () => stack.sandboxMails.listSandboxMails({ crmId: sandbox.crmId, to: visitor.email, limit: 20 });
    const [mail] = await eventually(async () => {
      const { mails } = await kept();
      expect(mails).toMatchObject([{ template: 'booking-verification', calendars: [] }]);
      return mails;
    });
    await confirm(mail!.text);
    await stack.customers.eraseAddress({ crmId: sandbox.crmId, email: visitor.email });
    await eventually(async () => expect((await kept()).mails).toEqual([]));
    expect(mailsTo(visitor)).toEqual([]);
  });
});

describe('the mail about a pending booking and the erasure of its address', () => {
  it('is gone with the address, and is not written again', async () => {
    refuseMails();
    const [visitor, other] = [newVisitor(), newVisitor()];
    await bookOnPage(visitor);
    await bookOnPage(other);
    const { aboutId } = await waitingMailTo(visitor);
    await waitingMailTo(other);
    await eraseAddress(visitor.email.toUpperCase());
    await request(aboutId);
    expect(await rowAbout(aboutId)).toEqual([]);
    expect(await waitingFor(other)).toHaveLength(1);
  });

  it('leaves nothing of the address if that is erased while the mail is written', async () => {
    refuseMails();
    const visitor = newVisitor();
    await bookOnPage(visitor);
    const { aboutId } = await waitingMailTo(visitor);
    await stack.database.kysely.deleteFrom('mail').where('aboutId', '=', aboutId).execute();
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    const locked = Promise.withResolvers<void>();
    const locking = stack.database.transaction(async (tx) => {
      await recordAddressErasure(tx, crmId);
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const writing = request(aboutId);
    await eventually(async () => expect(await waitingForLocks()).toBe(1));
    const erasing = eraseAddress(visitor.email);
    await eventually(async () => expect(await waitingForLocks()).toBe(2));
    release.resolve();
    await Promise.all([locking, writing, erasing]);
    expect(await waitingFor(visitor)).toEqual([]);
    expect((await stack.deadLetters.listDeadLetters({})).deadLetters).toEqual([]);
  });

  it('is written again if another address was erased meanwhile', async () => {
    const { kysely } = stack.database;
    const counted = await countAddressErasures(kysely, crmId);
    const store = (crm: string, since: number) =>
      stack.database.transaction((tx) => requireNoAddressErasure(tx, crm, since));
    await store(crmId, counted);
    await stack.database.transaction((tx) => eraseMailsTo(tx, crmId, 'other@example.com'));
    await expect(store(crmId, counted)).rejects.toThrow('an address was erased');
    await store(crmId, counted + 1);
    await store('another', 0);
  });
});

async function waitingForLocks(): Promise<number> {
  const { rows } =
    await sql`SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND NOT granted`.execute(
      stack.database.kysely,
    );
  return rows.length;
}
