import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import {
  type ListSandboxMailsRequest,
  MailState,
  type ParticipationMail,
  type ResendMailRequest,
} from '@scheduling/contracts/notification/v1';
import { events } from '@scheduling/events';
import { runWithContext } from '@scheduling/runtime';
import { eventually, patiently, repeatable, testRepeatableOperations, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { lockCustomer } from '../src/erasure/lock-customer.ts';
import { storeMail } from '../src/mail/store-mail.ts';
import {
  crmId,
  processed,
  providerReference,
  publishEvent,
  setUpProvider,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

const { BOOKED, CANCELED, DELETED, REQUESTED } = ParticipationState;
const otherCrm = 'other';
const sandbox = 'sandbox';
let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification({ timings: { firstRetryMs: 50, longestRetryMs: 50, pollMs: 50 } });
  await setUpProvider(stack, otherCrm);
  await setUpProvider(stack, sandbox, { sandbox: true });
}, 180_000);
beforeEach(() => {
  stack.smtp.trouble = () => undefined;
});
afterAll(() => stack[Symbol.asyncDispose]());

/** A participation, by its reference, which is also that of its customer and of its appointment. */
interface Booking {
  crmId: string;
  reference: string;
  customerId: string;
  email: string;
}

async function book(state: ParticipationState = BOOKED, crm = crmId): Promise<Booking> {
  const reference = `booking-${(names += 1)}`;
  const email = `${reference}@${crm}.example`;
  const owned = { crmId: crm, providerReference };
  const { customer } = await stack.customers.createCustomer({
    ...owned,
    customerReference: reference,
    userName: reference,
    email,
    language: 'en',
  });
  const time = { start: '2030-07-01T10:00', end: '2030-07-01T11:00', capacity: 5, acceptBookings: true };
  await stack.appointments.createAppointment({
    ...owned,
    ...time,
    reference,
    resourceReference: 'room',
    productReference: 'yoga',
    description: reference,
    participations: [],
  });
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: true, message: `See you, ${reference}` };
  await stack.participations.createParticipation({
    ...owned,
    ...flags,
    reference,
    appointmentReference: reference,
    customerReference: reference,
    state,
  });
  return { crmId: crm, reference, customerId: customer!.id, email };
}

const keyOf = ({ crmId: crm, reference }: Booking) => ({
  crmId: crm,
  providerReference,
  participationReference: reference,
});
const emailInCalendar = async (key: ReturnType<typeof keyOf>): Promise<string | null> => {
  const { json } = await stack.participations.getParticipation(key);
  return (JSON.parse(json.toString()) as { email: string | null }).email;
};
const move = (booking: Booking, state: ParticipationState, sendMails = true) =>
  stack.participations.updateParticipation({ ...keyOf(booking), state, ignoreCapacity: false, sendMails });
const list = async (booking: Booking): Promise<ParticipationMail[]> =>
  (await stack.participationMails.listParticipationMails(keyOf(booking))).mails;
const resend = async (booking: Booking, mailId: string): Promise<ParticipationMail> =>
  (await stack.participationMails.resendMail({ ...keyOf(booking), mailId })).mail!;
const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error: { code: string }) => error.code,
  );
const mailsTo = ({ email }: Booking) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map(({ parsed }) => parsed);
const calendarsOf = (booking: Booking) =>
  mailsTo(booking).map(({ attachments }) => attachments[0]?.content.toString() ?? '');
const rowsOf = ({ customerId }: Booking) =>
  stack.database.kysely.selectFrom('mail').selectAll().where('customerId', '=', customerId).orderBy('id').execute();

/** Resolves with the mails about it, once there are so many and all are finished. */
const finished = (booking: Booking, count: number): Promise<ParticipationMail[]> =>
  eventually(async () => {
    const mails = await list(booking);
    expect(mails).toHaveLength(count);
    for (const { state } of mails) expect(state).not.toBe(MailState.PENDING);
    return mails;
  });

async function bookAndReceive(
  state: ParticipationState = BOOKED,
  crm = crmId,
): Promise<{ booking: Booking; mail: ParticipationMail }> {
  const booking = await book(state, crm);
  const [mail] = await finished(booking, 1);
  return { booking, mail: mail! };
}

describe('the mails about a participation', () => {
  it('are listed with their states and without anything personal, oldest first', async () => {
    const { booking } = await bookAndReceive();
    await move(booking, CANCELED);
    const mails = await finished(booking, 2);
    const common = {
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      state: MailState.SENT,
      error: undefined,
      attempts: 1,
      createdAt: expect.any(Date),
      finishedAt: expect.any(Date),
    };
    expect(mails).toEqual([
      { ...common, template: 'booking-confirmed' },
      { ...common, template: 'booking-cancelled' },
    ]);
    expect(JSON.stringify(mails)).not.toContain(booking.reference);
  });

  it('are the 500 newest', async () => {
    const { booking, mail } = await bookAndReceive();
    await sql`
      INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, state, attempts, finished_at)
      SELECT crm_id, uuidv7(), about_id, version, template, 'many', 'failed', number, now() FROM mail, generate_series(1, 500) AS number
       WHERE id = ${mail.id} ORDER BY number`.execute(stack.database.kysely);
    expect((await list(booking)).map(({ attempts }) => attempts)).toEqual(
      Array.from({ length: 500 }, (_, index) => index + 1),
    );
  });

  it('are not found under another provider or CRM, or for an unknown participation', async () => {
    const { booking, mail } = await bookAndReceive();
    const { booking: foreign, mail: foreignMail } = await bookAndReceive(BOOKED, otherCrm);
    for (const [key, code] of [
      [{ ...keyOf(booking), crmId: otherCrm }, 'participation.not_found'],
      [{ ...keyOf(booking), providerReference: 'nobody' }, 'provider.not_found'],
      [{ ...keyOf(booking), participationReference: 'nobody' }, 'participation.not_found'],
    ] as const) {
      expect(await codeOf(stack.participationMails.listParticipationMails(key))).toBe(code);
      expect(await codeOf(stack.participationMails.resendMail({ ...key, mailId: mail.id }))).toBe(code);
    }
    const { booking: other, mail: otherMail } = await bookAndReceive();
    for (const mailId of [foreignMail.id, otherMail.id, randomUUID(), 'no id', ''])
      expect(await codeOf(resend(booking, mailId))).toBe('mail.not_found');
    for (const each of [booking, other, foreign]) expect(await list(each)).toHaveLength(1);
  });
});

describe('a mail that is sent again', () => {
  it('is a new one with the same content, and the same event for the calendar', async () => {
    const { booking, mail } = await bookAndReceive();
    const copy = await resend(booking, mail.id);
    expect(copy).toEqual({
      ...mail,
      id: copy.id,
      state: MailState.PENDING,
      attempts: 0,
      createdAt: expect.any(Date),
      finishedAt: undefined,
    });
    expect(copy.id).not.toBe(mail.id);
    expect((await finished(booking, 2)).map(({ id, state }) => [id, state])).toEqual(
      [mail.id, copy.id].map((id) => [id, MailState.SENT]),
    );
    const [first, second] = mailsTo(booking);
    expect(second!.text).toBe(first!.text);
    expect(second!.messageId).not.toBe(first!.messageId);
    const withoutTime = calendarsOf(booking).map((text) => text.replace(/DTSTAMP:\S+/, ''));
    expect(withoutTime[0]).toMatch(/METHOD:REQUEST[\s\S]+UID:[\s\S]+SEQUENCE:1\r/);
    expect(withoutTime[1]).toBe(withoutTime[0]);
  });

  it('was rejected by the mail server, and is delivered after the address was corrected', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 550 });
    const { booking, mail } = await bookAndReceive();
    expect(mail).toMatchObject({ state: MailState.FAILED, error: 'address-rejected', attempts: 1 });
    stack.smtp.trouble = () => undefined;
    const corrected = { ...booking, email: `corrected-${booking.email}` };
    await stack.customers.updateCustomer({
      crmId,
      providerReference,
      customerReference: booking.reference,
      email: corrected.email,
    });
    await eventually(async () => expect(await emailInCalendar(keyOf(booking))).toBe(corrected.email));
    await resend(booking, mail.id);
    expect(await finished(booking, 2)).toMatchObject([
      { state: MailState.FAILED },
      { state: MailState.SENT, error: undefined },
    ]);
    expect(mailsTo(booking)).toEqual([]);
    expect(mailsTo(corrected)).toHaveLength(1);
  });

  it('says through which CRM a booking was cancelled, and a copy of the copy says so, too', async () => {
    const { booking } = await bookAndReceive();
    await runWithContext({ requestId: 'cancellation', actor: 'crm:0123456789ab' }, () => move(booking, CANCELED));
    const [, mail] = await finished(booking, 2);
    const copy = await resend(booking, mail!.id);
    await finished(booking, 3);
    await resend(booking, copy.id);
    await finished(booking, 4);
    const [, ...cancellations] = mailsTo(booking);
    expect(cancellations[0]!.text).toContain('through Studio');
    expect(new Set(cancellations.map(({ text }) => text)).size).toBe(1);
    const [, ...calendars] = calendarsOf(booking);
    for (const text of calendars) expect(text).toMatch(/METHOD:CANCEL[\s\S]+SEQUENCE:2\r/);
    expect((await rowsOf(booking)).map(({ resendOf }) => resendOf)).toEqual([null, null, mail!.id, mail!.id]);
  });

  it('has no event for the calendar if the first one had none', async () => {
    const { booking } = await bookAndReceive(REQUESTED);
    await stack.appointments.cancelAppointment({ crmId, providerReference, appointmentReference: booking.reference });
    const [, mail] = await finished(booking, 2);
    expect(mail!.template).toBe('appointment-cancelled');
    await resend(booking, mail!.id);
    await finished(booking, 3);
    expect(calendarsOf(booking)).toEqual(['', '', '']);
  });
});

describe('no mail is sent again', () => {
  it('after the participation has changed, even if that change has no mail', async () => {
    const { booking, mail } = await bookAndReceive();
    await move(booking, DELETED, false);
    expect(await codeOf(resend(booking, mail.id))).toBe('mail.outdated');
    expect(await list(booking)).toHaveLength(1);
  });

  it('once a mail about a later change is stored', async () => {
    const { booking, mail } = await bookAndReceive();
    const [row] = await rowsOf(booking);
    const to = { name: 'Somebody', address: booking.email };
    const content = { from: to, to, language: 'en', subject: 'later', text: 'later', html: 'later', calendars: [] };
    const later = {
      crmId,
      eventId: randomUUID(),
      aboutId: row!.aboutId,
      version: 2,
      template: 'booking-moved' as const,
      customerId: booking.customerId,
      content,
      sandbox: false,
    };
    await stack.database.transaction((tx) => storeMail(tx, later));
    expect(await codeOf(resend(booking, mail.id))).toBe('mail.outdated');
    await finished(booking, 2);
    expect(await codeOf(resend(booking, mail.id))).toBe('mail.outdated');
  });

  it('while it waits, or a copy of it', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    const booking = await book();
    const waiting = await eventually(async () => {
      const [mail] = await list(booking);
      expect(mail).toMatchObject({ state: MailState.PENDING, error: 'deferred' });
      return mail!;
    });
    expect(await codeOf(resend(booking, waiting.id))).toBe('mail.pending');
    stack.smtp.trouble = () => undefined;
    await finished(booking, 1);

    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    const copy = await resend(booking, waiting.id);
    for (const id of [waiting.id, copy.id]) expect(await codeOf(resend(booking, id))).toBe('mail.pending');
    stack.smtp.trouble = () => undefined;
    await finished(booking, 2);
    await resend(booking, waiting.id);
    await finished(booking, 3);
  });

  it('by more than one of several concurrent requests', async () => {
    // A busy machine may not begin all of them in time; with its key, a repeated one is the same.
    const { booking, mail } = await bookAndReceive();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    const codes = await Promise.all(
      Array.from({ length: 10 }, () => codeOf(withKey(randomUUID(), () => patiently(() => resend(booking, mail.id))))),
    );
    expect(codes.toSorted()).toEqual([...Array.from({ length: 9 }, () => 'mail.pending'), 'none']);
    expect(await list(booking)).toHaveLength(2);
  });

  it('without an address', async () => {
    const { booking, mail } = await bookAndReceive();
    await stack.customers.updateCustomer({ crmId, providerReference, customerReference: booking.reference, email: '' });
    await eventually(async () => expect(await emailInCalendar(keyOf(booking))).toBeNull());
    expect(await codeOf(resend(booking, mail.id))).toBe('mail.address_missing');
    expect(await list(booking)).toHaveLength(1);
  });
});

describe('an erased person', () => {
  it('has no mails that could be sent again', async () => {
    const { booking, mail } = await bookAndReceive();
    await stack.customers.deleteCustomer({
      crmId,
      providerReference,
      customerReference: booking.reference,
      ignoreFutureAppointments: true,
    });
    expect(await codeOf(resend(booking, mail.id))).toBe('participation.not_found');
  });

  it('gets no mail that was being written meanwhile, and nothing of it is stored', async () => {
    const { booking, mail } = await bookAndReceive();
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    const locked = Promise.withResolvers<void>();
    const erasing = stack.database.transaction(async (tx) => {
      await lockCustomer(tx, booking);
      locked.resolve();
      await release.promise;
      await tx.insertInto('erasedCustomer').values({ crmId, customerId: booking.customerId }).execute();
      await tx.deleteFrom('mail').where('crmId', '=', crmId).where('customerId', '=', booking.customerId).execute();
    });
    await locked.promise;
    const code = codeOf(withKey(randomUUID(), () => resend(booking, mail.id)));
    await eventually(async () => expect(await waitingForLocks()).toBe(1));
    release.resolve();
    await erasing;
    expect(await code).toBe('mail.not_found');
    expect(await rowsOf(booking)).toEqual([]);
    expect(mailsTo(booking)).toHaveLength(1);
  });

  it('leaves no Idempotency-Key behind', async () => {
    const { booking, mail } = await bookAndReceive();
    const copy = await withKey(randomUUID(), () => resend(booking, mail.id));
    const keys = () =>
      stack.database.kysely
        .selectFrom('idempotencyKey')
        .select('keyHash')
        .where(sql<boolean>`resource_ids = ARRAY[${copy.id}::uuid]`)
        .execute();
    expect(await keys()).toHaveLength(1);
    const payload = events.customerErasureRequested.encode({
      crmId,
      customerId: booking.customerId,
      erasureId: randomUUID(),
      notify: false,
      byAddress: false,
    });
    await processed(
      stack,
      events.customerErasureRequested,
      await publishEvent(stack, randomUUID(), events.customerErasureRequested, payload),
    );
    expect(await rowsOf(booking)).toEqual([]);
    expect(await keys()).toEqual([]);
  });
});

describe('a repeated request', () => {
  it('gets the mail of the first one, although the participation has changed since', async () => {
    const { booking, mail } = await bookAndReceive();
    const key = randomUUID();
    const copy = await withKey(key, () => resend(booking, mail.id));
    await finished(booking, 2);
    await move(booking, CANCELED);
    await finished(booking, 3);
    expect(await withKey(key, () => resend(booking, mail.id))).toMatchObject({ id: copy.id, state: MailState.SENT });
    expect(mailsTo(booking)).toHaveLength(3);
  });
});

const prepare = async (crm: string): Promise<ResendMailRequest> => {
  const { booking, mail } = await bookAndReceive(BOOKED, crm);
  return { ...keyOf(booking), mailId: mail.id };
};

testRepeatableOperations(
  [
    repeatable<ResendMailRequest>({
      name: 'resend mail',
      prepare,
      change: (request) => ({ ...request, mailId: randomUUID() }),
      // Its state changes as soon as it is sent.
      send: async (request) => (await stack.participationMails.resendMail(request)).mail!.id,
      prepareRefused: async (crm) => {
        const request = await prepare(crm);
        const customer = { crmId: crm, providerReference, customerReference: request.participationReference };
        const change = async (email: string): Promise<void> => {
          await stack.customers.updateCustomer({ ...customer, email });
          await eventually(async () => expect((await emailInCalendar(request)) ?? '').toBe(email));
        };
        await change('');
        return { request, code: 'mail.address_missing', repair: () => change('back@example.com') };
      },
    }),
  ],
  () => ({ pool: stack.database.pool, tables: ['mail', 'idempotency_key'], crmIds: [crmId, otherCrm] }),
);

async function waitingForLocks(): Promise<number> {
  const { rows } =
    await sql`SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND NOT granted`.execute(
      stack.database.kysely,
    );
  return rows.length;
}

describe('the mails of a sandbox', () => {
  const listKept = async (query: Partial<ListSandboxMailsRequest> = {}) =>
    stack.sandboxMails.listSandboxMails({ crmId: sandbox, limit: 20, ...query });
  const keptFor = async ({ email }: { email: string }) => (await listKept({ to: email })).mails;
  const remove = ({ crmId: crm, reference }: Booking) =>
    stack.customers.deleteCustomer({
      crmId: crm,
      providerReference,
      customerReference: reference,
      ignoreFutureAppointments: true,
    });

  it('are kept as they would have been sent, newest first, and reach nobody', async () => {
    const { booking } = await bookAndReceive(BOOKED, sandbox);
    await move(booking, CANCELED);
    await finished(booking, 2);
    const kept = await keptFor(booking);
    expect(kept).toMatchObject([
      { template: 'booking-cancelled', calendars: [{ method: 'CANCEL' }] },
      { template: 'booking-confirmed', calendars: [{ method: 'REQUEST' }] },
    ]);
    expect(kept[1]).toEqual({
      id: (await list(booking))[0]!.id,
      template: 'booking-confirmed',
      sentAt: expect.any(Date),
      from: { name: 'Yoga & Co via Studio', address: 'hello@studio.example' },
      to: { name: booking.reference, address: booking.email },
      replyTo: { name: 'Yoga & Co', address: 'desk@yoga.example' },
      subject: expect.stringContaining(booking.reference),
      text: expect.stringContaining(`See you, ${booking.reference}`),
      html: expect.stringContaining('<html'),
      calendars: [{ method: 'REQUEST', text: expect.stringContaining('BEGIN:VCALENDAR') }],
    });
    expect(mailsTo(booking)).toEqual([]);
  });

  it('are listed in pages, and to one address in any case', async () => {
    const bookings = [await book(BOOKED, sandbox), await book(BOOKED, sandbox), await book(BOOKED, sandbox)];
    for (const booking of bookings) await finished(booking, 1);
    const all = (await listKept()).mails;
    const first = await listKept({ limit: 2 });
    const second = await listKept({ limit: 20, cursor: first.nextCursor });
    expect([...first.mails, ...second.mails]).toEqual(all);
    expect(second.nextCursor).toBeUndefined();
    expect(await listKept({ to: bookings[1]!.email.toUpperCase() })).toMatchObject({
      mails: [{ to: { address: bookings[1]!.email } }],
      nextCursor: undefined,
    });
    expect(await codeOf(listKept({ cursor: 'x' }))).toBe('sandbox.invalid');
  });

  it('are listed by an address in either form of its domain', async () => {
    const forms = ['verzeichnet@bücher.example', 'verzeichnet@xn--bcher-kva.example'];
    for (const [index, email] of forms.entries()) {
      const user = {
        crmId: sandbox,
        reference: `${index}@forms`,
        email,
        username: `forms-${index}`,
        lastName: 'Forms',
      };
      await stack.identity.createUser(user);
      if (index === 0) await stack.identity.requestVerification(user);
    }
    for (const to of forms)
      await eventually(async () =>
        expect(await listKept({ to })).toMatchObject({ mails: [{ to: { address: forms[0] } }] }),
      );
  });

  it('are sent again for the sandbox only', async () => {
    const { booking, mail } = await bookAndReceive(BOOKED, sandbox);
    await resend(booking, mail.id);
    await finished(booking, 2);
    expect(await keptFor(booking)).toMatchObject([
      { template: 'booking-confirmed' },
      { template: 'booking-confirmed' },
    ]);
    expect(mailsTo(booking)).toEqual([]);
  });

  it('are kept while the mail server rejects everything', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 550 });
    const { booking, mail } = await bookAndReceive(BOOKED, sandbox);
    expect(mail.state).toBe(MailState.SENT);
    expect(await keptFor(booking)).toHaveLength(1);
  });

  it('include the verification of an address, whose link works, until the user is deleted', async () => {
    const user = {
      crmId: sandbox,
      reference: 'verified@crm',
      email: 'verified@sandbox.example',
      username: 'verified',
      lastName: 'Verified',
    };
    await stack.identity.createUser(user);
    await stack.identity.requestVerification(user);
    const [mail] = await eventually(async () => {
      const kept = await keptFor(user);
      expect(kept).toMatchObject([{ template: 'email-verification' }]);
      return kept;
    });
    const token = /token=([\w-]+)/.exec(mail!.text)![1]!;
    await stack.identity.confirmVerification({ token });
    expect((await stack.identity.getUserVerification(user)).verification).toMatchObject({ verified: true });
    await stack.identity.deleteUser(user);
    await eventually(async () => expect(await keptFor(user)).toEqual([]));
  });

  it('are deleted with the person, and the last mail is not kept', async () => {
    const { booking } = await bookAndReceive(BOOKED, sandbox);
    await remove(booking);
    await eventually(async () => {
      const rows = await rowsOf(booking);
      expect(rows).toMatchObject([{ template: 'removed-by-deletion', state: 'sent', content: null }]);
    });
    expect(await keptFor(booking)).toEqual([]);
    expect(mailsTo(booking)).toEqual([]);
    const { rows } =
      await sql`SELECT FROM sandbox_mail WHERE sandbox_mail::text LIKE ${`%${booking.reference}@%`}`.execute(
        stack.database.kysely,
      );
    expect(rows).toEqual([]);
  });

  it('are deleted with an address that is erased, also one that its person has no longer', async () => {
    const { booking } = await bookAndReceive(BOOKED, sandbox);
    await stack.customers.updateCustomer({
      crmId: sandbox,
      providerReference,
      customerReference: booking.reference,
      email: 'moved@sandbox.example',
    });
    await stack.customers.eraseAddress({ crmId: sandbox, email: booking.email.toUpperCase() });
    await eventually(async () => expect(await keptFor(booking)).toEqual([]));
    expect(await rowsOf(booking)).toHaveLength(1);
  });

  it('are those of no other CRM', async () => {
    const { booking } = await bookAndReceive();
    expect(await codeOf(listKept({ crmId }))).toBe('sandbox.not_found');
    expect(await keptFor(booking)).toEqual([]);
    const { rows } = await sql`SELECT FROM sandbox_mail WHERE crm_id <> ${sandbox}`.execute(stack.database.kysely);
    expect(rows).toEqual([]);
  });
});
