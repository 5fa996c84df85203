import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { MailState } from '@scheduling/contracts/notification/v1';
import { callFunction } from '@scheduling/postgres';
import { eventually } from '@scheduling/testing';
import { type Insertable, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { UnwrittenMailTable } from '../src/db/schema.ts';
import { selectMails } from '../src/mail/select-mails.ts';
import { storeUnwrittenMail } from '../src/mail/store-unwritten-mail.ts';
import {
  crmId,
  providerReference,
  setUpProvider,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

const [busy, quiet] = ['busy', 'quiet'];
let stack: NotificationUnderTest;

beforeAll(async () => {
  stack = await startNotification({ timings: { firstRetryMs: 50, pollMs: 50 } });
  for (const id of [busy, quiet]) await setUpProvider(stack, id);
}, 180_000);
afterEach(() => {
  stack.smtp.trouble = () => undefined;
});
afterAll(() => stack[Symbol.asyncDispose]());

async function createAppointment(crm: string, reference: string, participants: string[]): Promise<void> {
  await stack.appointments.createAppointment({
    crmId: crm,
    providerReference,
    reference,
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 1_000,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    participations: participants.map((name) => ({
      reference: name,
      name,
      email: `${name}@${crm}.example`,
      state: ParticipationState.BOOKED,
    })),
  });
}

const change = (crm: string, appointmentReference: string, description: string) =>
  stack.appointments.updateAppointment({
    crmId: crm,
    providerReference,
    appointmentReference,
    description,
    noAddress: false,
    sendMails: true,
  });

let names = 0;

/** Somebody with a booking of their own appointment, who has received the confirmation. */
async function bookAndReceive() {
  const name = `person-${(names += 1)}`;
  const email = `${name}@${crmId}.example`;
  const owned = { crmId, providerReference };
  const { customer } = await stack.customers.createCustomer({
    ...owned,
    customerReference: name,
    userName: name,
    email,
    language: 'en',
  });
  await createAppointment(crmId, name, []);
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: true };
  await stack.participations.createParticipation({
    ...owned,
    ...flags,
    reference: name,
    appointmentReference: name,
    customerReference: name,
    state: ParticipationState.BOOKED,
  });
  const customerId = customer!.id;
  await eventually(async () => expect(await rowsOf(customerId)).toMatchObject([{ state: 'sent' }]));
  const { aboutId } = (await rowsOf(customerId))[0]!;
  return { name, email, customerId, aboutId, key: { ...owned, participationReference: name } };
}

const rowsOf = (customerId: string) =>
  stack.database.kysely.selectFrom('mail').selectAll().where('customerId', '=', customerId).orderBy('id').execute();
const unwrittenTo = (customerId: string) =>
  stack.database.kysely
    .selectFrom('unwrittenMail')
    .selectAll()
    .where('customerId', '=', customerId)
    .orderBy('version')
    .execute();
const mailsTo = (email: string) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map(({ parsed }) => parsed);

/**
 * Each change is consumed before the next one, and the mail about the first is written, so that it is known which one
 * supersedes which.
 */
async function changeTimes(name: string, customerId: string, times: number): Promise<void> {
  // In one statement, because a mail that is written moves from one table to the other.
  const { aboutId } = (await rowsOf(customerId))[0]!;
  const stored = async () =>
    (await selectMails(stack.database.kysely).select('id').where('aboutId', '=', aboutId).execute()).length;
  for (let number = 1; number <= times; number += 1) {
    const before = await stored();
    await change(crmId, name, `text ${number}`);
    await eventually(async () => expect(await stored()).toBe(before + 1));
    if (number === 1)
      await eventually(async () =>
        expect(await rowsOf(customerId)).toContainEqual(expect.objectContaining({ state: 'pending' })),
      );
  }
}

it('a CRM with hundreds of mails to write does not delay the confirmation of another one', async () => {
  const participants = Array.from({ length: 400 }, (_, number) => `participant-${number}`);
  await createAppointment(busy, 'crowded', participants);
  await createAppointment(quiet, 'calm', []);
  await stack.customers.createCustomer({
    crmId: quiet,
    providerReference,
    customerReference: 'anna',
    userName: 'Anna',
    email: 'anna@quiet.example',
  });
  await change(busy, 'crowded', 'Bring a towel');
  const booking = {
    reference: 'first',
    appointmentReference: 'calm',
    customerReference: 'anna',
    state: ParticipationState.BOOKED,
  };
  await stack.participations.createParticipation({
    crmId: quiet,
    providerReference,
    ...booking,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
  });
  await eventually(() =>
    expect(stack.smtp.mails.filter(({ recipients }) => recipients.includes('anna@quiet.example'))).toHaveLength(1),
  );
  const written = await stack.database.kysely.selectFrom('mail').select('id').where('crmId', '=', busy).execute();
  expect(written.length).toBeLessThan(participants.length / 2);
  for (const table of ['unwrittenMail', 'mail'] as const)
    await stack.database.kysely.deleteFrom(table).where('crmId', '=', busy).execute();
});

describe('mails about one booking, while an earlier one cannot be sent', () => {
  it('are not written, wait five at a time, and are then sent in their order', async () => {
    const { name, email, customerId, key } = await bookAndReceive();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await changeTimes(name, customerId, 8);
    const [, waiting, ...others] = await rowsOf(customerId);
    expect(waiting).toMatchObject({ state: 'pending', version: 2 });
    expect(others).toMatchObject(
      others.map(() => ({ state: 'failed', lastError: 'superseded', content: null, recipient: null })),
    );
    expect((await unwrittenTo(customerId)).map(({ version }) => version)).toEqual([6, 7, 8, 9]);

    const { mails } = await stack.participationMails.listParticipationMails(key);
    const pending = mails.filter(({ state }) => state === MailState.PENDING);
    expect(pending).toHaveLength(5);
    await expect(stack.participationMails.resendMail({ ...key, mailId: pending.at(-1)!.id })).rejects.toMatchObject({
      code: 'mail.pending',
    });

    stack.smtp.trouble = () => undefined;
    await eventually(() => expect(mailsTo(email)).toHaveLength(6));
    const versions = mailsTo(email).map(({ attachments }) =>
      Number(/SEQUENCE:(\d+)/.exec(attachments[0]!.content.toString())![1]),
    );
    expect(versions).toEqual([1, 2, 6, 7, 8, 9]);
    expect(mailsTo(email).at(-1)!.text).toContain('text 8');
    expect(await unwrittenTo(customerId)).toEqual([]);
    // Those that were listed before have kept their ids.
    expect((await rowsOf(customerId)).map(({ id }) => id)).toEqual(expect.arrayContaining(pending.map(({ id }) => id)));
  });

  it('are written once a cancellation follows, so that its content is not lost with the booking', async () => {
    const { name, email, customerId, key } = await bookAndReceive();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await changeTimes(name, customerId, 2);
    expect(await unwrittenTo(customerId)).toHaveLength(1);
    await stack.participations.updateParticipation({
      ...key,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: true,
    });
    await eventually(async () =>
      expect((await rowsOf(customerId)).map(({ version, state }) => [version, state])).toEqual([
        [1, 'sent'],
        [2, 'pending'],
        [3, 'pending'],
        [4, 'pending'],
      ]),
    );
    const { crmId: crm, providerReference: provider } = key;
    await stack.appointments.deleteAppointments({
      crmId: crm,
      providerReference: provider,
      target: { $case: 'appointmentReference', value: name },
    });
    stack.smtp.trouble = () => undefined;
    await eventually(() => expect(mailsTo(email)).toHaveLength(4));
    expect(mailsTo(email).at(-1)!.subject).toMatch(/^Cancelled/);
  });

  it('are superseded by a cancellation that does not wait for the quota', async () => {
    const { name, email, customerId, key } = await bookAndReceive();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await changeTimes(name, customerId, 3);
    // Not while one of them is being sent: that attempt would succeed.
    await eventually(async () => {
      const pending = stack.database.kysely
        .updateTable('mail')
        .where('customerId', '=', customerId)
        .where('state', '=', 'pending');
      await pending
        .set({ held: true, dueAt: sql<Date>`now() + interval '1 hour'` })
        .where('lease', 'is', null)
        .execute();
      expect((await rowsOf(customerId)).filter(({ state, held }) => state === 'pending' && !held)).toEqual([]);
    });
    stack.smtp.trouble = () => undefined;
    await stack.participations.updateParticipation({
      ...key,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: true,
    });
    await eventually(() =>
      expect(mailsTo(email).map(({ subject }) => subject)).toEqual([
        expect.any(String),
        expect.stringMatching(/^Cancelled/),
      ]),
    );
    await eventually(async () =>
      expect((await rowsOf(customerId)).map(({ state, lastError }) => lastError ?? state).toSorted()).toEqual([
        'sent',
        'sent',
        'superseded',
        'superseded',
        'superseded',
      ]),
    );
    expect(await unwrittenTo(customerId)).toEqual([]);
  });

  it('are erased with the person', async () => {
    const { name, customerId } = await bookAndReceive();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await changeTimes(name, customerId, 3);
    expect(await unwrittenTo(customerId)).toHaveLength(2);
    await stack.customers.deleteCustomer({
      crmId,
      providerReference,
      customerReference: name,
      ignoreFutureAppointments: true,
    });
    await eventually(async () => expect(await rowsOf(customerId)).toMatchObject([{ template: 'removed-by-deletion' }]));
    expect(await unwrittenTo(customerId)).toEqual([]);
  });
});

/** As the consumer stores it. */
async function unwritten(
  { aboutId, customerId }: { aboutId: string; customerId: string },
  changes: Partial<Insertable<UnwrittenMailTable>>,
): Promise<string> {
  const row = {
    crmId,
    eventId: randomUUID(),
    aboutId,
    version: 2,
    template: 'booking-moved',
    customerId,
    actor: 'service',
    requestId: 'request',
    ...changes,
  };
  const { id } = await stack.database.kysely
    .insertInto('unwrittenMail')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

describe('a mail that a killed process was writing', () => {
  it('is written by another one, and not stored by the first', async () => {
    const person = await bookAndReceive();
    const { email, customerId } = person;
    const lease = randomUUID();
    const id = await unwritten(person, { lease, dueAt: new Date(Date.now() + 500) });
    await eventually(() => expect(mailsTo(email)).toHaveLength(2));
    expect(await unwrittenTo(customerId)).toEqual([]);

    const again = await unwritten(person, { version: 3, lease: randomUUID(), dueAt: new Date(Date.now() + 60_000) });
    for (const each of [id, again]) {
      const request = { crmId, id: each, lease, customerId };
      expect(
        await callFunction(stack.database.kysely, { name: 'store_written_mail', request, locks: customerId }),
      ).toBe(false);
    }
    expect(await unwrittenTo(customerId)).toMatchObject([{ id: again }]);
  });
});

describe('the first of too many mails that wait', () => {
  it('is sent, although it was being written when later ones were dropped', async () => {
    const person = await bookAndReceive();
    const { aboutId, customerId, email } = person;
    const first = await unwritten(person, { lease: randomUUID(), dueAt: new Date(Date.now() + 2_000) });
    for (let version = 3; version <= 8; version += 1) {
      const { name, request } = storeUnwrittenMail({
        crmId,
        eventId: randomUUID(),
        participationId: aboutId,
        version,
        mail: { template: 'booking-moved', calendar: 'REQUEST' },
        customerId,
        providerId: randomUUID(),
        actor: 'service',
      });
      await callFunction(stack.database.kysely, { name, request: { ...request, crmId }, locks: customerId });
    }
    expect((await unwrittenTo(customerId)).map(({ version }) => version)).toEqual([2, 5, 6, 7, 8]);
    await eventually(() => expect(mailsTo(email)).toHaveLength(6));
    expect(await rowsOf(customerId)).toContainEqual(expect.objectContaining({ id: first, state: 'sent' }));
  });
});

describe('a mail that cannot be written', () => {
  it('is tried again until it is, and keeps no other waiting', async () => {
    const person = await bookAndReceive();
    const { email, customerId } = person;
    await unwritten(person, { template: 'unknown' });
    await eventually(async () => expect((await unwrittenTo(customerId))[0]!.attempts).toBeGreaterThan(1));
    await bookAndReceive();
    expect(mailsTo(email)).toHaveLength(1);
    await stack.database.kysely
      .updateTable('unwrittenMail')
      .set({ template: 'booking-moved' })
      .where('customerId', '=', customerId)
      .execute();
    await eventually(() => expect(mailsTo(email)).toHaveLength(2));
    expect(await unwrittenTo(customerId)).toEqual([]);
  });
});
