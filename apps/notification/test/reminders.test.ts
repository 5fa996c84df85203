import { ParticipationState, SandboxClockServiceService } from '@scheduling/contracts/calendar/v1';
import type { ParticipationReminderDue } from '@scheduling/contracts/events/v1';
import { MailState } from '@scheduling/contracts/notification/v1';
import { events } from '@scheduling/events';
import { createClient } from '@scheduling/rpc';
import { eventually, longTimeout, whilePaused } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  crmId,
  type NotificationUnderTest,
  processed,
  providerReference,
  publishEvent,
  setUpProvider,
  startNotification,
} from './notification-under-test.ts';

const { BOOKED, CANCELED, DELETED } = ParticipationState;
const sandbox = 'sandbox';
const start = new Date('2030-07-01T10:00:00Z');
const minuteMs = 60_000;

let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification();
  await setUpProvider(stack, sandbox, { sandbox: true });
}, 180_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Booking {
  owned: { crmId: string; providerReference: string };
  /** Also of the appointment and the customer. */
  reference: string;
  email: string;
  participationId: string;
  customerId: string;
  providerId: string;
}

async function book(crm = crmId): Promise<Booking> {
  const reference = `booking-${(names += 1)}`;
  const owned = { crmId: crm, providerReference };
  const email = `${reference}@${crm}.example`;
  const { customer } = await stack.customers.createCustomer({
    ...owned,
    customerReference: reference,
    userName: reference,
    email,
    language: 'en',
  });
  await stack.appointments.createAppointment({
    ...owned,
    reference,
    start: start.toISOString(),
    end: new Date(start.getTime() + 60 * minuteMs).toISOString(),
    capacity: 1,
    acceptBookings: false,
    resourceReference: 'room',
    productReference: 'yoga',
    description: reference,
    participations: [],
  });
  await stack.participations.createParticipation({
    ...owned,
    reference,
    appointmentReference: reference,
    customerReference: reference,
    state: BOOKED,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: false,
  });
  const { id } = await stack.participations.getParticipation({ ...owned, participationReference: reference });
  const { provider } = await stack.identity.getProvider({
    crmId: crm,
    key: { $case: 'reference', value: providerReference },
  });
  return { owned, reference, email, participationId: id, customerId: customer!.id, providerId: provider!.id };
}

/** Calendar says that a reminder of the booking is due, and notification has heard it. */
async function remind(booking: Booking, changes: Partial<ParticipationReminderDue> = {}): Promise<void> {
  const event = {
    crmId: booking.owned.crmId,
    participationId: booking.participationId,
    version: 1,
    providerId: booking.providerId,
    customerId: booking.customerId,
    start: '2030-07-01T10:00:00Z',
    minutes: 60,
    expiresAt: '2030-07-01T09:45:00Z',
    ...changes,
  };
  const definition = events.participationReminderDue;
  await processed(stack, definition, await publishEvent(stack, randomUUID(), definition, definition.encode(event)));
}

const mailsTo = ({ email }: Booking) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map(({ parsed }) => parsed);

const expiryOf = (minutes: number): string =>
  new Date(start.getTime() - Math.min(15, minutes / 2) * minuteMs).toISOString();

async function waitingMails({ participationId }: Booking) {
  const { kysely } = stack.database;
  const unwritten = await kysely
    .selectFrom('unwrittenMail')
    .select('id')
    .where('aboutId', '=', participationId)
    .execute();
  const mails = await kysely
    .selectFrom('mail')
    .select('id')
    .where('aboutId', '=', participationId)
    .where('state', '=', 'pending')
    .execute();
  return { unwritten, mails };
}

/** All mails to the person, once none waits any more. */
async function finished(booking: Booking) {
  await eventually(async () => expect(await waitingMails(booking)).toEqual({ unwritten: [], mails: [] }));
  return mailsTo(booking);
}

/** Waits until a call of the function waits for a lock. */
async function blocked(name: string): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql<{ count: number }>`
      SELECT count(*) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE ${`%${name}%`}`.execute(
      stack.database.kysely,
    );
    expect(rows[0]!.count, name).toBeGreaterThan(0);
  });
}

const changeState = ({ owned, reference }: Booking, state: ParticipationState) =>
  stack.participations.updateParticipation({
    ...owned,
    participationReference: reference,
    state,
    ignoreCapacity: false,
    sendMails: false,
  });

const setRules = (owned: Booking['owned'], selfService: boolean) =>
  stack.bookings.updateBookingRules({
    ...owned,
    noHorizon: false,
    defaultSelfService: false,
    reminders: { minutes: [60] },
    changeNotice: 30,
    selfService,
  });

describe('a reminder', () => {
  it('is sent when the time has come by the clock of the CRM, with the link, and not again when the clock was set back', async () => {
    const booking = await book(sandbox);
    using clocks = createClient(SandboxClockServiceService, 'calendar', stack.services.calendar.address, longTimeout);
    const setClock = (minutesBefore: number) =>
      clocks.setSandboxClock({ crmId: sandbox, now: new Date(start.getTime() - minutesBefore * minuteMs) });
    const kept = async () =>
      (await stack.sandboxMails.listSandboxMails({ crmId: sandbox, limit: 20, to: booking.email })).mails;

    await setClock(90);
    await setRules(booking.owned, true);
    await setClock(50);
    const [mail] = await eventually(async () => {
      const mails = await kept();
      expect(mails).toHaveLength(1);
      return mails;
    });
    expect(mail).toMatchObject({
      template: 'booking-reminder',
      subject: expect.stringMatching(`^Reminder: Mon.* – ${booking.reference}$`),
      calendars: [],
    });
    expect(mail!.text).toMatch(/I will be there:\nhttps:\/\/page\.example\/booking\/[\w-]+\/attend\n/);
    expect(mail!.text).toContain('Mon, 1 Jul 2030');

    const later = await book(sandbox);
    await setClock(90);
    await setClock(40);
    await eventually(async () =>
      expect(
        (await stack.sandboxMails.listSandboxMails({ crmId: sandbox, limit: 20, to: later.email })).mails,
      ).toHaveLength(1),
    );
    await finished(booking);
    expect(await kept()).toHaveLength(1);
  });

  it('is one mail for each length and start, however often it becomes due, and can be sent again until it is too late', async () => {
    const booking = await book();
    await remind(booking, { minutes: 1_440 });
    await finished(booking);
    await remind(booking);
    await remind(booking);
    const mails = await finished(booking);
    for (const { subject } of mails) expect(subject).toMatch(new RegExp(`^Reminder: Mon.* – ${booking.reference}$`));
    expect(mails).toHaveLength(2);
    await remind(booking);
    expect(await finished(booking)).toHaveLength(2);

    const key = { ...booking.owned, participationReference: booking.reference };
    const [mail] = (await stack.participationMails.listParticipationMails(key)).mails;
    await stack.participationMails.resendMail({ ...key, mailId: mail!.id });
    expect(await finished(booking)).toHaveLength(3);
    await stack.database.kysely.updateTable('mail').set({ expiresAt: new Date() }).where('id', '=', mail!.id).execute();
    await expect(stack.participationMails.resendMail({ ...key, mailId: mail!.id })).rejects.toMatchObject({
      code: 'mail.outdated',
    });
  });

  it('is one mail if its event is repeated at the very time when it is being written', async () => {
    const booking = await book();
    const { kysely, pool } = stack.database;
    const unwritten = kysely.selectFrom('unwrittenMail').where('aboutId', '=', booking.participationId);
    const holding = await pool.connect();
    try {
      await holding.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0');
      const row = await whilePaused([stack.services.calendar.pid], async () => {
        await remind(booking);
        const stored = await unwritten.selectAll().executeTakeFirstOrThrow();
        // Whoever writes it has to wait for this one, with its row gone.
        await holding.query(
          `INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, state, finished_at)
           SELECT crm_id, event_id, about_id, version, template, request_id, 'failed', now() FROM unwritten_mail WHERE id = $1`,
          [stored.id],
        );
        return stored;
      });
      const request = { ...row, maxWaiting: 10, urgentTemplates: [] };
      const { repeating } = await eventually(async () => {
        // It waits for 2 s at a time. Its row is there between them: an event that is repeated then changes nothing.
        await blocked('store_written_mail');
        const repeating = sql`SELECT store_unwritten_mail(${request}::jsonb)`.execute(kysely);
        const outcome = Promise.race([repeating.then(() => 'answered'), blocked('store_unwritten_mail')]);
        expect(await outcome).not.toBe('answered');
        return { repeating };
      });
      await holding.query('ROLLBACK');
      await repeating;
      // A second row would be something later, to which the mail gives way.
      expect(await unwritten.select('id').execute()).toEqual([]);
    } finally {
      holding.release(true);
    }
    expect(await finished(booking)).toHaveLength(1);
  });

  it.each([
    { what: 'a booking that was cancelled', change: (booking: Booking) => changeState(booking, CANCELED) },
    { what: 'a booking that was deleted', change: (booking: Booking) => changeState(booking, DELETED) },
    {
      what: 'an appointment that was cancelled',
      change: ({ owned, reference }: Booking) =>
        stack.appointments.cancelAppointment({ ...owned, appointmentReference: reference }),
    },
    {
      what: 'an appointment that was deleted',
      change: ({ owned, reference }: Booking) =>
        stack.appointments.deleteAppointments({
          ...owned,
          target: { $case: 'appointmentReference', value: reference },
        }),
    },
    {
      what: 'a booking that begins at another time now',
      change: ({ owned, reference }: Booking) =>
        stack.appointments.updateAppointment({
          ...owned,
          appointmentReference: reference,
          start: '2030-07-01T10:15:00Z',
          sendMails: false,
          noAddress: false,
        }),
    },
    {
      what: 'a person who was erased',
      change: ({ owned, reference }: Booking) =>
        stack.customers.deleteCustomer({ ...owned, customerReference: reference, ignoreFutureAppointments: true }),
    },
  ])('is not sent of $what', async ({ change }) => {
    const booking = await book();
    await change(booking);
    await remind(booking);
    const mails = await finished(booking);
    expect(mails.filter(({ subject }) => subject!.startsWith('Reminder'))).toEqual([]);
  });

  it('is the shortest one of those that became due while the mail server or what reads bookings was down', async () => {
    const booking = await book();
    const minutes = [1_440, 120, 20];
    stack.smtp.trouble = () => ({ at: 'data', code: 451 });
    for (const each of minutes) await remind(booking, { minutes: each, expiresAt: expiryOf(each) });
    await eventually(async () => expect((await waitingMails(booking)).unwritten).toEqual([]));
    stack.smtp.trouble = () => undefined;
    expect(await finished(booking)).toHaveLength(1);

    const later = await book();
    await whilePaused([stack.services.calendar.pid], async () => {
      for (const each of minutes.toReversed()) await remind(later, { minutes: each, expiresAt: expiryOf(each) });
    });
    expect(await finished(later)).toHaveLength(1);
    for (const reminded of [booking, later]) {
      const sent = await stack.database.kysely
        .selectFrom('mail')
        .select('expiresAt')
        .where('aboutId', '=', reminded.participationId)
        .where('state', '=', 'sent')
        .execute();
      expect(sent).toEqual([{ expiresAt: new Date(expiryOf(20)) }]);
    }
  });

  it('says nothing of the earlier time of a booking that was moved', async () => {
    const booking = await book();
    await stack.appointments.updateAppointment({
      ...booking.owned,
      appointmentReference: booking.reference,
      start: '2030-07-01T10:15:00Z',
      sendMails: true,
      noAddress: false,
    });
    await eventually(() => expect(mailsTo(booking)).toHaveLength(1));
    await remind(booking, { version: 2, start: '2030-07-01T10:15:00Z' });
    const [changed, reminder] = await finished(booking);
    expect(changed!.text).toContain('Previously');
    expect(reminder!.subject).toMatch(/^Reminder: /);
    expect(reminder!.text).toContain('Here are the time and place once more');
    expect(reminder!.text).not.toContain('Previously');
  });

  it('is not sent if it has waited for the mail server, and a mail about a later change waits, too', async () => {
    const booking = await book();
    stack.smtp.trouble = () => ({ at: 'data', code: 451 });
    await remind(booking);
    const waiting = stack.database.kysely.updateTable('mail').where('aboutId', '=', booking.participationId);
    // It is not being sent at the moment, and will not be until the other one waits.
    const postponed = waiting
      .set({ dueAt: sql`'infinity'` })
      .where('attempts', '>', 0)
      .where('lease', 'is', null);
    await eventually(async () => expect((await postponed.executeTakeFirstOrThrow()).numUpdatedRows).toBe(1n));
    await stack.appointments.updateAppointment({
      ...booking.owned,
      appointmentReference: booking.reference,
      start: '2030-07-01T10:15:00Z',
      sendMails: true,
      noAddress: false,
    });
    await eventually(async () => expect((await waitingMails(booking)).unwritten).toHaveLength(1));
    stack.smtp.trouble = () => undefined;
    await waiting.set({ dueAt: sql`now()` }).execute();
    const mails = await finished(booking);
    expect(mails.map(({ subject }) => subject)).toEqual([expect.not.stringContaining('Reminder')]);
  });

  it('is not written, or given up, when it is too late', async () => {
    const booking = await book();
    await remind(booking, { expiresAt: new Date(Date.now() - 1_000).toISOString() });
    expect(await finished(booking)).toEqual([]);

    stack.smtp.trouble = () => ({ at: 'data', code: 451 });
    await remind(booking, { minutes: 30 });
    const ofBooking = stack.database.kysely
      .updateTable('mail')
      .set({ expiresAt: sql`now()`, dueAt: sql`now()` })
      .where('aboutId', '=', booking.participationId)
      .where('attempts', '>', 0);
    await eventually(async () => expect((await ofBooking.executeTakeFirstOrThrow()).numUpdatedRows).toBe(1n));
    expect(await finished(booking)).toEqual([]);
    stack.smtp.trouble = () => undefined;
    const key = { ...booking.owned, participationReference: booking.reference };
    const { mails } = await stack.participationMails.listParticipationMails(key);
    expect(mails).toMatchObject([{ template: 'booking-reminder', state: MailState.FAILED }]);
  });
});
