import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import type { ReceivedMail } from '@scheduling/testing/smtp';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { MailContent } from '../src/db/schema.ts';
import { eraseUser } from '../src/erasure/erase-user.ts';
import { lockCustomer } from '../src/erasure/lock-customer.ts';
import { storeMail } from '../src/mail/store-mail.ts';
import { readMail } from './read-mail.ts';
import {
  crmId,
  processed,
  providerReference,
  publishEvent,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification({
    timings: { firstRetryMs: 50, pollMs: 50, longestRetryMs: 100, firstPauseMs: 20, longestPauseMs: 50 },
  });
}, 180_000);
beforeEach(() => {
  stack.smtp.trouble = () => undefined;
});
afterAll(() => stack[Symbol.asyncDispose]());

interface Person {
  reference: string;
  customerId: string;
  email: string;
}

async function createPerson(): Promise<Person> {
  const reference = `person-${(names += 1)}`;
  const email = `${reference}@example.com`;
  const { customer } = await stack.customers.createCustomer({
    crmId,
    providerReference,
    customerReference: reference,
    userName: reference,
    email,
    language: 'en',
  });
  return { reference, email, customerId: customer!.id };
}

async function book(
  { reference }: Person,
  appointmentReference: string,
  options: { state?: ParticipationState; sendMails?: boolean } = {},
): Promise<void> {
  await stack.appointments.createAppointment({
    crmId,
    providerReference,
    reference: appointmentReference,
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 5,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description: appointmentReference,
    participations: [],
  });
  await stack.participations.createParticipation({
    crmId,
    providerReference,
    reference: `${appointmentReference}-${reference}`,
    appointmentReference,
    customerReference: reference,
    state: ParticipationState.BOOKED,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
    ...options,
  });
}

const remove = ({ reference }: Person) =>
  stack.customers.deleteCustomer({
    crmId,
    providerReference,
    customerReference: reference,
    ignoreFutureAppointments: true,
  });

const request = ({ customerId }: Person, erasureId: string) => {
  const payload = events.customerErasureRequested.encode({
    crmId,
    customerId,
    erasureId,
    notify: false,
    byAddress: false,
  });
  return publishEvent(stack, randomUUID(), events.customerErasureRequested, payload);
};

const mailsTo = ({ email }: Person) => stack.smtp.mails.filter(({ recipients }) => recipients.includes(email));
const rowsOf = ({ customerId }: Person) =>
  stack.database.kysely.selectFrom('mail').selectAll().where('customerId', '=', customerId).execute();
async function confirmations(): Promise<string[]> {
  const rows = await stack.database.kysely
    .selectFrom('outbox')
    .select('data')
    .where('subject', '=', events.notificationErasureConfirmed.subject)
    .execute();
  return rows.map(({ data }) => events.notificationErasureConfirmed.fromJson(data!).erasureId);
}

/** The customer service requests slow erasures again, and gets another confirmation. */
const confirmed = async () => new Set(await confirmations()).size;

async function waitingForLocks(): Promise<number> {
  const { rows } =
    await sql`SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND NOT granted`.execute(
      stack.database.kysely,
    );
  return rows.length;
}

const contentFor = (email: string): MailContent => ({
  from: { name: 'Studio', address: 'hello@studio.example' },
  to: { name: 'Somebody', address: email },
  language: 'en',
  subject: 'A mail',
  text: 'A text',
  html: '<p>A text</p>',
  calendars: [],
});

const storeFor = ({ customerId, email }: Person) =>
  stack.database.transaction((tx) =>
    storeMail(tx, {
      crmId,
      eventId: randomUUID(),
      aboutId: randomUUID(),
      version: 1,
      template: 'booking-confirmed',
      customerId,
      content: contentFor(email),
      sandbox: false,
    }),
  );

describe('a customer who is deleted from future appointments', () => {
  it('gets one last mail about each, which removes from the calendar what an earlier one has put there, and is then erased', async () => {
    const person = await createPerson();
    await book(person, 'first');
    await book(person, 'second');
    await book(person, 'asked', { state: ParticipationState.REQUESTED });
    await book(person, 'silent', { sendMails: false });
    await eventually(() => expect(mailsTo(person)).toHaveLength(3));
    const before = await confirmed();
    await remove(person);
    await eventually(() => expect(mailsTo(person)).toHaveLength(7));
    const uidOf = ({ parsed }: ReceivedMail) =>
      parsed.attachments.map(({ content }) => /UID:(\S+)/.exec(content.toString())![1]!)[0];
    const uids = new Map(
      mailsTo(person)
        .slice(0, 3)
        .map((mail) => [readMail(mail).title, uidOf(mail)]),
    );
    const last = mailsTo(person).slice(3);
    expect(last.map(({ parsed }) => parsed.subject!.replace(/, .*/, '')).toSorted()).toEqual(
      ['asked', 'first', 'second', 'silent'].map((name) => `Your data was deleted: ${name}`),
    );
    for (const mail of last) {
      const name = readMail(mail).title;
      const wasInvited = name === 'first' || name === 'second';
      expect(uidOf(mail)).toBe(wasInvited ? uids.get(name)! : undefined);
      expect(mail.parsed.text!.includes('removes the appointment from your calendar')).toBe(wasInvited);
      for (const { content } of mail.parsed.attachments)
        expect(content.toString()).toMatch(/METHOD:CANCEL[\s\S]+SEQUENCE:[2-9]/);
    }
    await eventually(async () => expect(await confirmed()).toBe(before + 1));
    const row = { template: 'removed-by-deletion', state: 'sent', content: null, recipient: null };
    expect(await rowsOf(person)).toMatchObject([row, row, row, row]);
  });

  it('gets none of the pending mails, only the last one, and that only until it expires', async () => {
    const person = await createPerson();
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await book(person, 'waiting');
    await eventually(async () => expect(await rowsOf(person)).toHaveLength(1));
    const before = await confirmed();
    await remove(person);
    await eventually(async () =>
      expect(await rowsOf(person)).toMatchObject([{ template: 'removed-by-deletion', state: 'pending' }]),
    );
    expect(await confirmed()).toBe(before);
    const [waiting] = await rowsOf(person);
    expect(waiting!.expiresAt!.getTime() - waiting!.createdAt.getTime()).toBeLessThanOrEqual(600_000);
    await stack.database.kysely
      .updateTable('mail')
      .set({ expiresAt: new Date() })
      .where('id', '=', waiting!.id)
      .execute();
    await eventually(async () =>
      expect(await rowsOf(person)).toMatchObject([{ state: 'failed', content: null, recipient: null }]),
    );
    expect(await confirmed()).toBe(before + 1);
    expect(mailsTo(person)).toEqual([]);
  });
});

describe('a mail that is being sent to a person who is erased', () => {
  /** Lets the mail server hold the mail until the test says what becomes of it. */
  async function bookWhileHeld(person: Person, appointmentReference: string) {
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    onTestFinished(() => answer.resolve());
    stack.smtp.trouble = (recipient) => {
      if (recipient !== person.email) return undefined;
      arrived.resolve();
      return { at: 'rcpt', hangUntil: answer.promise };
    };
    await book(person, appointmentReference);
    await arrived.promise;
    return answer;
  }

  const marked = (person: Person) =>
    eventually(async () =>
      expect(await rowsOf(person)).toMatchObject([
        { template: 'booking-confirmed', erasedAt: expect.any(Date) as Date },
      ]),
    );

  it('arrives before the last one, and leaves nothing', async () => {
    const person = await createPerson();
    const answer = await bookWhileHeld(person, 'held');
    const before = await confirmed();
    await remove(person);
    await marked(person);
    stack.smtp.trouble = () => undefined;
    answer.resolve();
    await eventually(() => expect(mailsTo(person)).toHaveLength(2));
    expect(mailsTo(person).map(({ parsed }) => parsed.subject)).toEqual([
      expect.stringContaining('Your booking'),
      expect.stringContaining('Your data was deleted'),
    ]);
    await eventually(async () => expect(await confirmed()).toBe(before + 1));
    expect(await rowsOf(person)).toMatchObject([{ template: 'removed-by-deletion', state: 'sent' }]);
  });

  it('is not tried again if the connection breaks', async () => {
    const person = await createPerson();
    await bookWhileHeld(person, 'rejected');
    await remove(person);
    await marked(person);
    stack.smtp.trouble = () => undefined;
    await stack.smtp.stop();
    await stack.smtp.start();
    await eventually(async () =>
      expect(await rowsOf(person)).toMatchObject([{ template: 'removed-by-deletion', state: 'sent' }]),
    );
    expect(mailsTo(person).map(({ parsed }) => parsed.subject)).toEqual([
      expect.stringContaining('Your data was deleted'),
    ]);
  });

  it('holds up the last mail for a minute at most', async () => {
    const person = await createPerson();
    const answer = await bookWhileHeld(person, 'endless');
    await remove(person);
    await marked(person);
    stack.smtp.trouble = () => undefined;
    await stack.database.kysely
      .updateTable('mail')
      .set({ erasedAt: sql<Date>`now() - interval '1 minute'` })
      .where('customerId', '=', person.customerId)
      .execute();
    await eventually(async () => expect(await rowsOf(person)).toMatchObject([{ template: 'removed-by-deletion' }]));
    answer.resolve();
    await eventually(async () => expect(await rowsOf(person)).toMatchObject([{ state: 'sent' }]));
  });

  it('holds up the erasure of an address, too', async () => {
    const person = { reference: 'gone', customerId: randomUUID(), email: 'held-address@example.com' };
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    onTestFinished(() => answer.resolve());
    stack.smtp.trouble = () => {
      arrived.resolve();
      return { at: 'rcpt', hangUntil: answer.promise };
    };
    await storeFor(person);
    await arrived.promise;
    const { erasure } = await stack.customers.eraseAddress({ crmId, email: person.email });
    await marked(person);
    const isConfirmed = async () => (await confirmations()).includes(erasure!.id);
    expect(await isConfirmed()).toBe(false);
    answer.resolve();
    await eventually(async () => expect(await isConfirmed()).toBe(true));
    expect(await rowsOf(person)).toEqual([]);
    expect(mailsTo(person)).toHaveLength(1);
  });
});

describe('an erasure', () => {
  it('is confirmed every time it is requested, and no mail is stored after it', async () => {
    const person = await createPerson();
    const erasureId = randomUUID();
    for (const times of [1, 2, 3]) {
      await request(person, erasureId);
      await eventually(async () =>
        expect((await confirmations()).filter((id) => id === erasureId)).toHaveLength(times),
      );
    }
    await storeFor(person);
    expect(await rowsOf(person)).toEqual([]);
  });

  it('leaves nothing behind while mails are stored concurrently', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    for (let seed = 0; seed < 20; seed += 1) {
      const person = { reference: 'nobody', customerId: randomUUID(), email: `race-${seed}@example.com` };
      const erasureId = randomUUID();
      await Promise.all([storeFor(person), storeFor(person), request(person, erasureId), storeFor(person)]);
      await eventually(async () => expect(await confirmations()).toContain(erasureId));
      await storeFor(person);
      expect(await rowsOf(person)).toEqual([]);
    }
  });

  it('keeps a mail that is written meanwhile from being stored', async () => {
    const person = await createPerson();
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    const locked = Promise.withResolvers<void>();
    const erasing = stack.database.transaction(async (tx) => {
      await lockCustomer(tx, { crmId, customerId: person.customerId });
      locked.resolve();
      await release.promise;
      await tx.insertInto('erasedCustomer').values({ crmId, customerId: person.customerId }).execute();
    });
    await locked.promise;
    const storing = storeFor(person);
    await eventually(async () => expect(await waitingForLocks()).toBe(1));
    release.resolve();
    await Promise.all([erasing, storing]);
    expect(await rowsOf(person)).toEqual([]);
  });

  it('holds up no mail to others', async () => {
    const [erased, other] = [await createPerson(), await createPerson()];
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    const locked = Promise.withResolvers<void>();
    const erasing = stack.database.transaction(async (tx) => {
      await lockCustomer(tx, { crmId, customerId: erased.customerId });
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    await book(erased, 'held-up');
    await book(other, 'not-held-up');
    await eventually(() => expect(mailsTo(other)).toHaveLength(1));
    expect(mailsTo(erased)).toEqual([]);
    release.resolve();
    await erasing;
    await eventually(() => expect(mailsTo(erased)).toHaveLength(1));
  });

  it('leaves nothing but the last mails of persons who have just booked', async () => {
    const persons = await Promise.all(Array.from({ length: 8 }, () => createPerson()));
    await Promise.all(persons.map((person) => book(person, `of-${person.reference}`)));
    await Promise.all(persons.map(remove));
    await eventually(async () => {
      const open = await Promise.all(persons.map(rowsOf));
      expect(open.flat()).toMatchObject(persons.map(() => ({ template: 'removed-by-deletion', state: 'sent' })));
    });
  });
});

describe('an erased address', () => {
  /** Cancels an appointment in which the person is embedded, and waits until the mail about this waits. */
  async function cancelWithMail(reference: string, email: string): Promise<string> {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await stack.appointments.createAppointment({
      crmId,
      providerReference,
      reference,
      start: '2030-08-01T10:00',
      end: '2030-08-01T11:00',
      capacity: 1,
      acceptBookings: false,
      resourceReference: 'room',
      productReference: 'yoga',
      participations: [
        { reference: `${reference}-embedded`, name: 'Embedded', email, state: ParticipationState.BOOKED },
      ],
    });
    await stack.appointments.cancelAppointment({ crmId, providerReference, appointmentReference: reference });
    await eventually(async () => expect(await waitingFor(email)).toHaveLength(1));
    return reference;
  }

  const waitingFor = (email: string) =>
    stack.database.kysely
      .selectFrom('mail')
      .selectAll()
      .where('recipient', '=', email.toLowerCase())
      .where('state', '=', 'pending')
      .execute();
  const eraseAddress = async (email: string): Promise<void> => {
    const { erasure } = await stack.customers.eraseAddress({ crmId, email });
    await eventually(async () => {
      const answer = await stack.customers.getAddressErasure({ crmId, erasureId: erasure!.id });
      expect(answer.erasure!.completedAt).toBeInstanceOf(Date);
    });
  };

  it('gets none of the mails that wait, nor one that is written meanwhile, whoever is or was known with it', async () => {
    const email = 'Embedded@example.com';
    await cancelWithMail('of-embedded', email);
    const [mail] = await waitingFor(email);
    // Of somebody whom no other service knows any more.
    await storeFor({ reference: 'gone', customerId: randomUUID(), email });
    await eraseAddress('embedded@EXAMPLE.com');
    expect(await waitingFor(email)).toEqual([]);
    await storeFor({ reference: 'late', customerId: mail!.customerId!, email });
    expect(await waitingFor(email)).toEqual([]);
  });

  it('is the same in either form of its domain', async () => {
    const forms = ['domain@bücher.example', 'Domain@XN--bcher-kva.example'];
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    const waiting = () =>
      stack.database.kysely
        .selectFrom('mail')
        .select('id')
        .where('recipient', 'like', 'domain@%')
        .where('state', '=', 'pending')
        .execute();
    for (const form of forms) {
      for (const email of forms) await storeFor({ reference: 'gone', customerId: randomUUID(), email });
      expect(await waiting()).toHaveLength(2);
      await eraseAddress(form);
      expect(await waiting()).toEqual([]);
    }
    stack.smtp.trouble = () => undefined;
    const person = { reference: 'sent', customerId: randomUUID(), email: forms[0]! };
    const digests = () =>
      stack.database.kysely
        .selectFrom('recentMail')
        .innerJoin('mail', 'mail.id', 'recentMail.mailId')
        .select('mailId')
        .where('customerId', '=', person.customerId)
        .execute();
    await storeFor(person);
    await eventually(async () => expect(await digests()).toHaveLength(1));
    await eraseAddress(forms[1]!);
    expect(await digests()).toEqual([]);
  });

  it('still gets the last mail to a deleted customer, and mails to a user', async () => {
    const person = await createPerson();
    await book(person, 'both');
    await eventually(() => expect(mailsTo(person)).toHaveLength(1));
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    const user = {
      crmId,
      eventId: randomUUID(),
      aboutId: randomUUID(),
      version: 0,
      template: 'email-verification' as const,
      userId: randomUUID(),
      content: contentFor(person.email),
      sandbox: false,
    };
    await stack.database.transaction((tx) => storeMail(tx, user));
    const erase = () => stack.customers.eraseAddress({ crmId, email: person.email });
    const { erasure } = await erase();
    await eventually(async () =>
      expect(await rowsOf(person)).toMatchObject([{ template: 'removed-by-deletion', state: 'pending' }]),
    );
    const times = async () => (await confirmations()).filter((id) => id === erasure!.id).length;
    await eventually(async () => expect(await times()).toBeGreaterThan(0));
    const before = await times();
    await erase();
    await eventually(async () => expect(await times()).toBeGreaterThan(before));
    expect((await waitingFor(person.email)).map(({ template }) => template).toSorted()).toEqual([
      'email-verification',
      'removed-by-deletion',
    ]);
    stack.smtp.trouble = () => undefined;
    await eventually(() => expect(mailsTo(person)).toHaveLength(3));
  });

  it('leaves no digest of the address', async () => {
    const person = { reference: 'sent', customerId: randomUUID(), email: 'Sent@example.com' };
    const digests = () =>
      stack.database.kysely
        .selectFrom('recentMail')
        .innerJoin('mail', 'mail.id', 'recentMail.mailId')
        .select('mailId')
        .where('customerId', '=', person.customerId)
        .execute();
    await storeFor(person);
    await eventually(async () => expect(await digests()).toHaveLength(1));
    await eraseAddress('sent@example.com');
    expect(await digests()).toEqual([]);
  });
});

describe('a deleted user', () => {
  interface User {
    id: string;
    reference: string;
    email: string;
  }

  async function createUser(): Promise<User> {
    const name = `user-${(names += 1)}`;
    const reference = `${name}@crm`;
    const { user } = await stack.identity.createUser({
      crmId,
      reference,
      email: `${name}@example.com`,
      username: name,
      lastName: name,
    });
    return { id: user!.id, reference, email: user!.email };
  }

  const verify = ({ reference }: User) => stack.identity.requestVerification({ crmId, reference });
  const removeUser = ({ reference }: User) => stack.identity.deleteUser({ crmId, reference });
  const mailsOf = ({ id }: User) =>
    stack.database.kysely.selectFrom('mail').selectAll().where('userId', '=', id).execute();
  const recentMails = () => stack.database.kysely.selectFrom('recentMail').selectAll().execute();
  const storeForUser = ({ id, email }: User) =>
    stack.database.transaction((tx) =>
      storeMail(tx, {
        crmId,
        eventId: randomUUID(),
        aboutId: randomUUID(),
        version: 0,
        template: 'email-verification',
        userId: id,
        content: contentFor(email),
        sandbox: false,
      }),
    );
  const publishDeletion = async ({ id }: User) => {
    const payload = events.userDeleted.encode({ crmId, userId: id });
    await processed(stack, events.userDeleted, await publishEvent(stack, randomUUID(), events.userDeleted, payload));
  };

  it('gets none of the waiting mails, and those that were sent are forgotten', async () => {
    const user = await createUser();
    await verify(user);
    await eventually(async () => expect(await mailsOf(user)).toMatchObject([{ state: 'sent' }]));
    const [sent] = await mailsOf(user);
    expect(await recentMails()).toContainEqual(expect.objectContaining({ mailId: sent!.id }));
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await storeForUser(user);
    await removeUser(user);
    await eventually(async () => expect(await mailsOf(user)).toEqual([]));
    expect(await recentMails()).not.toContainEqual(expect.objectContaining({ mailId: sent!.id }));
    stack.smtp.trouble = () => undefined;
    await storeForUser(user);
    expect(await mailsOf(user)).toEqual([]);
    expect(stack.smtp.mails.filter(({ recipients }) => recipients.includes(user.email))).toHaveLength(1);
  });

  it('is erased once, however often the event arrives, and no other user is', async () => {
    const [user, other] = [await createUser(), await createUser()];
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await storeForUser(user);
    await storeForUser(other);
    for (let times = 0; times < 2; times += 1) await publishDeletion(user);
    expect(await mailsOf(user)).toEqual([]);
    expect(await mailsOf(other)).toHaveLength(1);
  });

  it('leaves nothing behind while mails are stored concurrently', async () => {
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    for (let round = 0; round < 10; round += 1) {
      const user = { id: randomUUID(), reference: 'nobody', email: `user-race-${round}@example.com` };
      await Promise.all([storeForUser(user), storeForUser(user), publishDeletion(user), storeForUser(user)]);
      await storeForUser(user);
      expect(await mailsOf(user)).toEqual([]);
    }
  });

  it('keeps a mail that is written meanwhile from being stored', async () => {
    const user = await createUser();
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    const erased = Promise.withResolvers<void>();
    const erasing = stack.database.transaction(async (tx) => {
      await eraseUser(tx, { crmId, userId: user.id });
      erased.resolve();
      await release.promise;
    });
    await erased.promise;
    const storing = storeForUser(user);
    await eventually(async () => expect(await waitingForLocks()).toBe(1));
    release.resolve();
    await Promise.all([erasing, storing]);
    expect(await mailsOf(user)).toEqual([]);
  });
});

it('a verification mail is not sent any more, and its content is cleared, once its link has expired', async () => {
  const name = `late-${(names += 1)}`;
  const reference = `${name}@crm`;
  const email = `${name}@example.com`;
  const { user } = await stack.identity.createUser({ crmId, reference, email, username: name, lastName: name });
  stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
  await stack.identity.requestVerification({ crmId, reference });
  const mails = () => stack.database.kysely.selectFrom('mail').selectAll().where('userId', '=', user!.id).execute();
  await eventually(async () => expect(await mails()).toMatchObject([{ state: 'pending' }]));
  const [waiting] = await mails();
  expect((waiting!.expiresAt!.getTime() - waiting!.createdAt.getTime()) / 3_600_000).toBeCloseTo(24, 1);
  await stack.database.kysely
    .updateTable('mail')
    .set({ expiresAt: new Date() })
    .where('id', '=', waiting!.id)
    .execute();
  await eventually(async () =>
    expect(await mails()).toMatchObject([{ state: 'failed', lastError: 'expired', content: null, recipient: null }]),
  );
});
