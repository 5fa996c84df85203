import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { MailState } from '@scheduling/contracts/notification/v1';
import { type EventDefinition, events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures } from './failures.ts';
import {
  crmId,
  processed,
  providerReference,
  publishEvent,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

const consumer = 'notification-calendar-participation-changed';
let stack: NotificationUnderTest;

beforeAll(async () => {
  stack = await startNotification({ maxAttempts: 2, timings: { firstRetryMs: 50, pollMs: 50 } });
  await stack.customers.createCustomer({
    crmId,
    providerReference,
    customerReference: 'bill',
    userName: 'Bill',
    email: 'bill@example.com',
    language: 'en',
  });
  await stack.appointments.createAppointment({
    crmId,
    providerReference,
    reference: 'class',
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 50,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    participations: [],
  });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

const book = (reference: string) =>
  stack.participations.createParticipation({
    crmId,
    providerReference,
    reference,
    appointmentReference: 'class',
    customerReference: 'bill',
    state: ParticipationState.BOOKED,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
    message: `about ${reference}`,
  });

const mailsAbout = (text: string) => stack.smtp.mails.filter(({ parsed }) => parsed.text?.includes(text));
const arrival = (text: string, count = 1) => eventually(() => expect(mailsAbout(text)).toHaveLength(count));

const newestMail = () =>
  stack.database.kysely.selectFrom('mail').selectAll().orderBy('createdAt', 'desc').limit(1).executeTakeFirstOrThrow();

/**
 * The stream forgets its message ids after two minutes, so this is what a late redelivery looks like. Resolves when it
 * has been processed.
 */
async function repeat<Data>(eventId: string, definition: EventDefinition<Data>, data: Data): Promise<void> {
  await processed(stack, definition, await publishEvent(stack, eventId, definition, definition.encode(data)));
}

/** What the event says about a participation that was created as booked. */
const created = (participationId: string) => ({
  crmId,
  participationId,
  version: 1,
  cause: ParticipationChangeCause.CREATED,
  fromState: ParticipationState.UNSPECIFIED,
  toState: ParticipationState.BOOKED,
  notify: true,
  notifyProvider: false,
  decided: false,
  neverInvited: false,
  exempt: false,
  ordinal: 0,
  previousOrdinal: 0,
  appointmentId: '01990000-0000-7000-8000-0000000000fa',
  providerId: '01990000-0000-7000-8000-0000000000fb',
  actor: 'service',
});

const forgetInbox = () => stack.database.kysely.deleteFrom('inbox').execute();

describe('a redelivered event', () => {
  it('creates no second mail, even when the inbox has forgotten it', async () => {
    await book('again');
    await arrival('about again');
    const mail = await newestMail();
    const data = created(mail.aboutId);
    await repeat(mail.eventId, events.participationChanged, data);
    await forgetInbox();
    await repeat(mail.eventId, events.participationChanged, data);
    expect(
      await stack.database.kysely.selectFrom('mail').select('id').where('aboutId', '=', mail.aboutId).execute(),
    ).toHaveLength(1);
    expect(mailsAbout('about again')).toHaveLength(1);
  });

  it('does not invalidate the link of a verification mail', async () => {
    const person = { email: 'ida@example.com', username: 'ida', lastName: 'Ida', language: 'en' };
    await stack.identity.addStaff({ crmId, providerReference, member: { $case: 'invitation', value: person } });
    await stack.identity.createUser({ crmId, reference: 'ida@crm', ...person });
    await arrival('verify-email');
    const mail = await newestMail();
    await forgetInbox();
    await repeat(mail.eventId, events.emailVerificationRequested, { crmId, verificationId: mail.aboutId });
    const token = /token=([\w-]+)/.exec(mailsAbout('verify-email')[0]!.parsed.text!)![1]!;
    await expect(stack.identity.getVerification({ token })).resolves.toMatchObject({ email: person.email });
    expect(mailsAbout('verify-email')).toHaveLength(1);
  });
});

describe('a mail that its server rejects for good', () => {
  it('is reported with the participation, the customer and the provider that it is about', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 550 });
    await book('rejected');
    await eventually(async () => expect(await failures(stack.database)).toHaveLength(1));
    stack.smtp.trouble = () => undefined;
    const [{ provider }, { customer }, { id, aboutId }] = await Promise.all([
      stack.identity.getProvider({ crmId, key: { $case: 'reference', value: providerReference } }),
      stack.customers.getCustomer({
        crmId,
        key: { $case: 'reference', value: { providerReference, customerReference: 'bill' } },
      }),
      newestMail(),
    ]);
    const template = 'booking-confirmed';
    expect(await failures(stack.database)).toEqual([
      { crmId, mailId: id, aboutId, template, customerId: customer!.id, providerId: provider!.id },
    ]);
  });
});

describe('an event that arrives too late', () => {
  it('no longer applies to anything, and creates no mail', async () => {
    const data = created('01990000-0000-7000-8000-0000000000ff');
    const eventId = '01990000-0000-7000-8000-0000000000fe';
    await repeat(eventId, events.participationChanged, data);
    await eventually(async () =>
      expect(await stack.database.kysely.selectFrom('unwrittenMail').selectAll().execute()).toEqual([]),
    );
    expect(await stack.database.kysely.selectFrom('mail').selectAll().where('eventId', '=', eventId).execute()).toEqual(
      [],
    );
  });
});

describe('a poison event', () => {
  it('becomes a dead letter that operators can see, blocks no other event, and can be retried and dropped', async () => {
    await publishEvent(
      stack,
      '01990000-0000-7000-8000-0000000000fd',
      events.participationChanged,
      Buffer.from('not protobuf'),
    );
    await book('behind-poison');
    await arrival('about behind-poison');

    const list = async () => (await stack.deadLetters.listDeadLetters({})).deadLetters;
    await eventually(async () => expect(await list()).toHaveLength(1));
    const [letter] = await list();
    expect(letter).toMatchObject({ consumer, subject: events.participationChanged.subject, attempts: 2 });
    const key = { consumer, eventId: letter!.eventId };
    expect(await stack.deadLetters.getDeadLetter(key)).toMatchObject({ deadLetter: letter, data: undefined });

    expect((await stack.deadLetters.retryDeadLetter(key)).failure).toBe(letter!.error);
    const [again] = await list();
    expect(again).toMatchObject({ eventId: letter!.eventId, attempts: 3 });
    expect(again!.failedAt!.getTime()).toBeGreaterThan(letter!.failedAt!.getTime());

    await stack.deadLetters.dropDeadLetter(key);
    expect(await list()).toEqual([]);
    const audited = await stack.database.kysely
      .selectFrom('auditEntry')
      .select(['action', 'target'])
      .orderBy('id')
      .execute();
    expect(audited).toEqual(
      ['dead-letter.retry', 'dead-letter.drop'].map((action) => ({ action, target: `${consumer} ${letter!.eventId}` })),
    );
    await expect(stack.deadLetters.getDeadLetter(key)).rejects.toMatchObject({ code: 'dead_letter.not_found' });
    await expect(stack.deadLetters.retryDeadLetter({ ...key, eventId: 'no id' })).rejects.toMatchObject({
      code: 'dead_letter.not_found',
    });
  });
});

describe('a dead letter whose cause is gone', () => {
  it('is processed by a retry, and removed', async () => {
    await book('revived');
    await arrival('about revived');
    const mail = await newestMail();
    await stack.database.kysely.deleteFrom('mail').where('id', '=', mail.id).execute();
    await forgetInbox();
    const data = created(mail.aboutId);
    const { subject, encode } = events.participationChanged;
    const letter = {
      consumer,
      eventId: mail.eventId,
      subject,
      payload: encode(data),
      requestId: 'first',
      error: 'none',
      attempts: 10,
    };
    await stack.database.kysely.insertInto('deadLetter').values(letter).execute();
    expect(await stack.deadLetters.retryDeadLetter({ consumer, eventId: mail.eventId })).toEqual({
      failure: undefined,
    });
    expect((await stack.deadLetters.listDeadLetters({})).deadLetters).toEqual([]);
    await arrival('about revived', 2);
    await expect(stack.deadLetters.retryDeadLetter({ consumer, eventId: mail.eventId })).rejects.toMatchObject({
      code: 'dead_letter.not_found',
    });
  });
});

describe('a mail that failed permanently', () => {
  it('is listed with the reason and without personal data', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 550 });
    await book('refused');
    const failed = async () => (await stack.mails.listMails({ state: MailState.UNSPECIFIED })).mails;
    await eventually(async () => expect(await failed()).toHaveLength(1));
    stack.smtp.trouble = () => undefined;
    expect(await failed()).toMatchObject([
      {
        crmId,
        template: 'booking-confirmed',
        state: MailState.FAILED,
        attempts: 1,
        lastError: 'EENVELOPE RCPT TO 550',
      },
    ]);
    expect(JSON.stringify(await failed())).not.toMatch(/bill/i);
    expect((await stack.mails.listMails({ state: MailState.SENT })).mails.length).toBeGreaterThan(0);
  });
});
