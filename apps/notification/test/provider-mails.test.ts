import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { runWithContext } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  crmId,
  type NotificationUnderTest,
  providerReference,
  setUpProvider,
  startNotification,
} from './notification-under-test.ts';

const { BOOKED, REQUESTED, CANCELED } = ParticipationState;
const owned = { crmId, providerReference };
const desk = 'desk@yoga.example';

let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  // No hour ends during the tests.
  stack = await startNotification({ timings: { quotaWindowMs: 100 * 365 * 24 * 3_600_000 } });
  await tellProvider();
}, 180_000);
afterAll(() => stack?.[Symbol.asyncDispose]());
beforeEach(async () => {
  stack.smtp.mails.length = 0;
  await stack.database.kysely.deleteFrom('providerMailCount').execute();
});

async function tellProvider(key = owned, notifyProvider = true): Promise<void> {
  await stack.bookings.updateBookingRules({ ...key, notifyProvider, noHorizon: false });
}

interface Place {
  contactReference?: string;
  hour?: number;
}

async function createAppointment({ contactReference, hour = 10 }: Place = {}, key = owned): Promise<string> {
  const reference = `appointment-${(names += 1)}`;
  await stack.appointments.createAppointment({
    ...key,
    reference,
    start: `2030-07-01T${hour}:00:00Z`,
    end: `2030-07-01T${hour + 1}:00:00Z`,
    capacity: 1_000,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description: 'Yoga',
    contactReference,
    participations: [],
  });
  return reference;
}

interface Booked {
  reference: string;
  name: string;
  email: string;
  customerId: string;
}

async function book(
  appointmentReference: string,
  {
    state = BOOKED,
    sendMails = true,
    message,
    key = owned,
  }: { state?: ParticipationState; sendMails?: boolean; message?: string; key?: typeof owned } = {},
): Promise<Booked> {
  const reference = `person-${(names += 1)}`;
  const email = `${reference}@example.com`;
  const { customer } = await stack.customers.createCustomer({
    ...key,
    customerReference: reference,
    userName: `Person ${names}`,
    email,
    mobile: '+49 171 2345678',
    note: 'Allergic to dust',
    language: 'en',
  });
  await stack.participations.createParticipation({
    ...key,
    reference,
    appointmentReference,
    customerReference: reference,
    state,
    message,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails,
  });
  return { reference, name: customer!.userName, email, customerId: customer!.id };
}

async function cancel({ reference }: Booked, message?: string): Promise<void> {
  await stack.participations.updateParticipation({
    ...owned,
    participationReference: reference,
    state: CANCELED,
    message,
    ignoreCapacity: false,
    sendMails: true,
  });
}

/** To another appointment. */
async function moveTo({ reference }: Booked, hour: number): Promise<void> {
  await stack.bookings.changeBooking({
    ...owned,
    participationReference: reference,
    place: { $case: 'appointmentReference', value: await createAppointment({ hour }) },
    ignoreNotice: true,
    sendMails: true,
  });
}

const mailsTo = (address: string) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(address)).map(({ parsed }) => parsed);

/** When everything that was to be written and sent has been. */
async function settled(): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql<{ waiting: number }>`
      SELECT (SELECT count(*) FROM provider_notice WHERE state = 'pending' AND due_at <= now() + interval '1 minute')::int
           + (SELECT count(*) FROM unwritten_mail)::int + (SELECT count(*) FROM mail WHERE state = 'pending')::int AS waiting`.execute(
      stack.database.kysely,
    );
    expect(rows[0]!.waiting).toBe(0);
  });
}

/** The mails, once there are so many and no more are on their way. */
async function lastMailsTo(address: string, count: number) {
  await eventually(() => expect(mailsTo(address)).toHaveLength(count));
  await settled();
  expect(mailsTo(address)).toHaveLength(count);
  return mailsTo(address);
}

const waitingMails = (template: string) =>
  stack.database.kysely
    .selectFrom('mail')
    .select('content')
    .where('template', '=', template)
    .where('state', '=', 'pending')
    .execute();

/** What the mail server has refused is due at once. */
async function sendAgain(): Promise<void> {
  await stack.database.kysely
    .updateTable('mail')
    .set({ dueAt: sql<Date>`now()` })
    .where('state', '=', 'pending')
    .execute();
}

describe('a provider that is told about its bookings', () => {
  it('learns who has booked what, and answers the person', async () => {
    const booked = await book(await createAppointment());
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.subject).toMatch(/^Neue Buchung: Mo\., 1\. Juli 2030, 12:00 Uhr – Yoga$/);
    expect(mail!.replyTo!.value).toMatchObject([{ address: booked.email, name: booked.name }]);
    expect(mail!.from!.value).toMatchObject([{ address: 'hello@studio.example', name: 'Studio' }]);
    for (const text of [mail!.text!, mail!.html as string]) {
      for (const part of [booked.name, booked.email, '+49 171 2345678', 'Allergic to dust', 'Yoga', '12:00'])
        expect(text).toContain(part);
    }
    expect(mail!.html).toContain('href="tel:+491712345678"');
  });

  it('learns of a request, of its withdrawal by nobody but the person, and of no decision', async () => {
    const requested = await book(await createAppointment(), { state: REQUESTED, message: 'Please early' });
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.subject).toMatch(/^Neue Anfrage: .*Yoga$/);
    expect(mail!.text).toContain('Please early');
    await cancel(requested);
    await eventually(() => expect(mailsTo(requested.email)).toHaveLength(2));
    await lastMailsTo(desk, 1);
  });

  it.each([
    [true, /^Confirmed: .* Yoga$/],
    [false, /^Declined: .* Yoga$/],
  ])('decides a request by the link in the mail, and the person learns it (%s)', async (confirm, subject) => {
    const requested = await book(await createAppointment(), { state: REQUESTED });
    const [mail] = await lastMailsTo(desk, 1);
    const [, token] = /https:\/\/page\.example\/decide\/([\w-]+)/.exec(mail!.text!)!;
    expect(mail!.html).toContain(`href="https://page.example/decide/${token}"`);
    const { booking } = await stack.decisions.getRequestedBooking({ token: token! });
    const { shown } = booking!;
    await stack.decisions.decideRequestedBooking({ token: token!, confirm, message: 'Bring a mat', shown });
    const [, decided] = await lastMailsTo(requested.email, 2);
    expect(decided!.subject).toMatch(subject);
    expect(decided!.text).toContain('Message from Yoga & Co:\n> Bring a mat');
    await lastMailsTo(desk, 1);
  });

  it('gets no link for a booking', async () => {
    await book(await createAppointment());
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.text).not.toContain('page.example');
  });

  it('learns of a cancellation, with its message', async () => {
    const booked = await book(await createAppointment());
    await cancel(booked, 'We are ill');
    const [, mail] = await lastMailsTo(desk, 2);
    expect(mail!.subject).toMatch(/^Storniert: .*Yoga$/);
    expect(mail!.text).toContain('We are ill');
    expect(mail!.text).toContain(booked.name);
  });

  it('learns of a move', async () => {
    const booked = await book(await createAppointment());
    await lastMailsTo(desk, 1);
    await moveTo(booked, 14);
    const [, mail] = await lastMailsTo(desk, 2);
    expect(mail!.subject).toMatch(/^Verschoben: .*16:00.* – Yoga$/);
    expect(mail!.text).toMatch(/Bisher: .*12:00/);
  });

  it('is told of no earlier time that it was not told', async () => {
    stack.smtp.trouble = (recipient) => (recipient === desk ? { at: 'rcpt', code: 450 } : undefined);
    const booked = await book(await createAppointment());
    await eventually(async () => expect(await waitingMails('provider-booked')).toHaveLength(1));
    await moveTo(booked, 14);
    await eventually(async () => expect(await waitingMails('provider-moved')).toHaveLength(1));
    stack.smtp.trouble = () => undefined;
    await sendAgain();
    const [, moved] = await lastMailsTo(desk, 2);
    expect(moved!.text).toContain('16:00');
    expect(moved!.text).not.toContain('Bisher');
  });

  it('learns once that a whole appointment was cancelled or changed, whoever takes part', async () => {
    const appointmentReference = await createAppointment();
    const people = [
      await book(appointmentReference),
      await book(appointmentReference),
      await book(appointmentReference),
    ];
    await lastMailsTo(desk, 3);
    await stack.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      description: 'Late yoga',
      noAddress: false,
      sendMails: true,
    });
    await lastMailsTo(desk, 4);
    await stack.appointments.cancelAppointment({ ...owned, appointmentReference, message: 'Closed' });
    const mails = await lastMailsTo(desk, 5);
    expect(mails.slice(3).map(({ subject }) => subject)).toEqual([
      expect.stringMatching(/^Termin geändert: .*Late yoga$/),
      expect.stringMatching(/^Termin abgesagt: .*Late yoga$/),
    ]);
    expect(mails[4]!.text).toContain('Closed');
    for (const { text } of mails.slice(3)) for (const { name } of people) expect(text).not.toContain(name);
    for (const { email } of people) expect(mailsTo(email)).toHaveLength(3);
  });

  const update = (appointmentReference: string, changes: { description?: string; contactReference?: string }) =>
    stack.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      noAddress: false,
      sendMails: true,
      ...changes,
    });

  it('learns of each change of an appointment, whatever the CRM calls its requests', async () => {
    const appointmentReference = await createAppointment();
    await book(appointmentReference);
    for (const [index, description] of ['Late yoga', 'Other yoga'].entries()) {
      await runWithContext({ requestId: 'always-the-same', actor: 'crm:test' }, () =>
        update(appointmentReference, { description }),
      );
      expect((await lastMailsTo(desk, index + 2)).at(-1)!.subject).toContain(description);
    }
  });

  it('learns of the changes of an appointment in their order, whatever the mail server refuses', async () => {
    const appointmentReference = await createAppointment();
    await book(appointmentReference);
    await lastMailsTo(desk, 1);
    stack.smtp.trouble = (recipient) => (recipient === desk ? { at: 'rcpt', code: 450 } : undefined);
    await update(appointmentReference, { description: 'Late yoga' });
    await eventually(async () => expect(await waitingMails('provider-appointment-changed')).toHaveLength(1));
    await stack.appointments.cancelAppointment({ ...owned, appointmentReference });
    await eventually(async () => expect(await waitingMails('provider-appointment-cancelled')).toHaveLength(1));
    stack.smtp.trouble = () => undefined;
    await sendAgain();
    const [, changed, cancelled] = await lastMailsTo(desk, 3);
    expect(changed!.subject).toMatch(/^Termin geändert/);
    expect(cancelled!.subject).toMatch(/^Termin abgesagt/);
  });

  it('learns nothing of what nobody is to be told', async () => {
    const silent = await book(await createAppointment(), { sendMails: false });
    const told = await book(await createAppointment());
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.text).toContain(told.name);
    expect(mailsTo(silent.email)).toEqual([]);
  });

  it('learns of the booking of a person without an address, too', async () => {
    const reference = `person-${(names += 1)}`;
    const appointmentReference = await createAppointment();
    await stack.customers.createCustomer({
      ...owned,
      customerReference: reference,
      userName: 'Nobody',
      language: 'en',
    });
    await stack.participations.createParticipation({
      ...owned,
      reference,
      appointmentReference,
      customerReference: reference,
      state: BOOKED,
      ignoreCapacity: false,
      onDuplicateRaise: false,
      sendMails: true,
    });
    const [mail] = await lastMailsTo(desk, 1);
    expect(mail!.text).toContain('Nobody');
    expect(mail!.replyTo).toBeUndefined();
  });
});

async function addContact(verified: boolean): Promise<{ reference: string; email: string }> {
  const reference = `contact-${(names += 1)}@crm`;
  const email = `contact-${names}@studio.example`;
  await stack.identity.createUser({
    crmId,
    reference,
    email,
    username: reference,
    lastName: 'Contact',
    language: 'en',
  });
  await stack.identity.addStaff({ ...owned, member: { $case: 'userReference', value: reference } });
  if (verified) await verify(reference, email);
  stack.smtp.mails.length = 0;
  return { reference, email };
}

async function verify(reference: string, email: string): Promise<void> {
  await stack.identity.requestVerification({ crmId, reference });
  await eventually(() => expect(mailsTo(email)).toHaveLength(1));
  const [, token] = /token=([\w-]+)/.exec(mailsTo(email)[0]!.text!)!;
  await stack.identity.confirmVerification({ token: token! });
}

describe('who is told', () => {
  it('is the contact of the appointment, too, if it is staff with a confirmed address', async () => {
    const [confirmed, unconfirmed, removed] = [await addContact(true), await addContact(false), await addContact(true)];
    await stack.identity.removeStaff({ ...owned, userReference: removed.reference });
    for (const { reference } of [confirmed, unconfirmed, removed])
      await book(await createAppointment({ contactReference: reference }));
    await lastMailsTo(desk, 3);
    const [mail] = await lastMailsTo(confirmed.email, 1);
    expect(mail!.subject).toMatch(/^New booking: .*Yoga$/);
    expect(mail!.text).toContain('Hello Contact');
    for (const { email } of [unconfirmed, removed]) expect(mailsTo(email)).toEqual([]);
  });

  it('is the owner of a provider without an address', async () => {
    const key = { crmId: 'addressless', providerReference };
    await setUpProvider(stack, key.crmId, { hasAddress: false });
    await tellProvider(key);
    stack.smtp.mails.length = 0;
    await book(await createAppointment({}, key), { key });
    const [mail] = await lastMailsTo('owner@addressless.example', 1);
    expect(mail!.subject).toMatch(/^Neue Buchung: .*Yoga$/);
    expect(mailsTo(desk)).toEqual([]);
  });

  it('is nobody where the rule says so', async () => {
    const key = { crmId: 'untold', providerReference };
    await setUpProvider(stack, key.crmId);
    const booked = await book(await createAppointment({}, key), { key });
    await eventually(() => expect(mailsTo(booked.email)).toHaveLength(1));
    await settled();
    expect(mailsTo(desk)).toEqual([]);
    const notices = await stack.database.kysely
      .selectFrom('providerNotice')
      .selectAll()
      .where('crmId', '=', key.crmId)
      .execute();
    expect(notices).toEqual([]);
  });
});

describe('a busy hour', () => {
  const hourIsOver = () =>
    stack.database.kysely
      .updateTable('providerNotice')
      .set({ dueAt: sql<Date>`now()` })
      .where('template', '=', 'provider-list')
      .execute();

  /** As many as fill the quota are counted already. */
  async function fillHour(mails: number): Promise<void> {
    await book(await createAppointment());
    await lastMailsTo(desk, 1);
    await stack.database.kysely.updateTable('providerMailCount').set({ mails }).execute();
    stack.smtp.mails.length = 0;
  }

  it('has 60 mails and one list, and each booking is in one of them', async () => {
    await fillHour(50);
    const appointmentReference = await createAppointment();
    const people = await Promise.all(Array.from({ length: 20 }, () => book(appointmentReference)));
    await eventually(() => expect(mailsTo(desk)).toHaveLength(10));
    await eventually(async () => expect(await entries()).toHaveLength(10));
    await hourIsOver();
    await lastMailsTo(desk, 11);
    const texts = mailsTo(desk).map(({ text }) => text!);
    const list = texts.find((text) => text.includes('Weitere Buchungen'))!;
    expect(texts.filter((text) => text === list)).toHaveLength(1);
    for (const { email } of people)
      expect(
        texts.filter((text) => text.includes(email)),
        email,
      ).toHaveLength(1);
  });

  const entries = () =>
    stack.database.kysely
      .selectFrom('providerNotice')
      .select(['id', 'customerId'])
      .where('state', '=', 'listed')
      .where('createdAt', '>', sql<Date>`now() - interval '2 minutes'`)
      .execute();

  /** Two more people, of whom the provider is to be told by a list. */
  async function listTwo(): Promise<[Booked, Booked]> {
    await fillHour(60);
    const appointmentReference = await createAppointment();
    const people: [Booked, Booked] = [await book(appointmentReference), await book(appointmentReference)];
    const ids = new Set(people.map(({ customerId }) => customerId));
    await eventually(async () =>
      expect((await entries()).filter(({ customerId }) => ids.has(customerId!))).toHaveLength(2),
    );
    return people;
  }

  const erase = ({ reference }: Booked) =>
    stack.customers.deleteCustomer({
      ...owned,
      customerReference: reference,
      ignoreFutureAppointments: true,
    });

  it('of a contact is told to that contact, whoever the contact is by then', async () => {
    const [first, second] = [await addContact(true), await addContact(true)];
    const appointments = [
      await createAppointment({ contactReference: first.reference, hour: 11 }),
      await createAppointment({ contactReference: first.reference, hour: 14 }),
    ];
    await book(appointments[0]!);
    await lastMailsTo(first.email, 1);
    await stack.database.kysely.updateTable('providerMailCount').set({ mails: 60 }).execute();
    const people = [await book(appointments[0]!), await book(appointments[1]!)];
    // Of each the provider and the contact are to be told.
    const ids = new Set(people.map(({ customerId }) => customerId));
    await eventually(async () =>
      expect((await entries()).filter(({ customerId }) => ids.has(customerId!))).toHaveLength(4),
    );
    await stack.appointments.updateAppointment({
      ...owned,
      appointmentReference: appointments[0]!,
      contactReference: second.reference,
      noAddress: false,
      sendMails: false,
    });
    await hourIsOver();
    const [, list] = await lastMailsTo(first.email, 2);
    for (const { email } of people) expect(list!.text).toContain(email);
    expect(mailsTo(second.email)).toEqual([]);
  });

  it('tells of a change of an appointment although the first of its people was erased', async () => {
    await fillHour(60);
    const appointmentReference = await createAppointment();
    const people = [
      await book(appointmentReference),
      await book(appointmentReference),
      await book(appointmentReference),
    ];
    await stack.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      description: 'Late yoga',
      noAddress: false,
      sendMails: true,
    });
    const listed = () =>
      stack.database.kysely
        .selectFrom('providerNotice')
        .select('participationIds')
        .where('template', '=', 'provider-appointment-changed')
        .where('state', '=', 'listed')
        .where('recipient', '=', 'PROVIDER')
        .orderBy('id', 'desc')
        .executeTakeFirst();
    await eventually(async () => expect((await listed())!.participationIds).toHaveLength(3));
    const [firstId] = (await listed())!.participationIds;
    for (const person of people) {
      const { id } = await stack.participations.getParticipation({
        ...owned,
        participationReference: person.reference,
      });
      if (id === firstId) await erase(person);
    }
    await hourIsOver();
    const [list] = await lastMailsTo(desk, 1);
    expect(list!.text).toContain('Late yoga');
  });

  it('names nobody who is erased before the list is written', async () => {
    const [erased, kept] = await listTwo();
    await erase(erased);
    await eventually(async () =>
      expect((await entries()).map(({ customerId }) => customerId)).not.toContain(erased.customerId),
    );
    await hourIsOver();
    const [list] = await lastMailsTo(desk, 1);
    expect(list!.text).toContain(kept.email);
    expect(list!.text).not.toContain(erased.email);
  });

  it('names nobody who is erased while the list waits for the mail server', async () => {
    const [erased, kept] = await listTwo();
    stack.smtp.trouble = (recipient) => (recipient === desk ? { at: 'rcpt', code: 450 } : undefined);
    await hourIsOver();
    const waiting = () => waitingMails('provider-list');
    await eventually(async () =>
      expect(await waiting()).toMatchObject([{ content: { text: expect.stringContaining(erased.email) } }]),
    );
    await erase(erased);
    await eventually(async () =>
      expect(await waiting()).toMatchObject([{ content: { text: expect.not.stringContaining(erased.email) } }]),
    );
    stack.smtp.trouble = () => undefined;
    await sendAgain();
    const [list] = await lastMailsTo(desk, 1);
    expect(list!.text).toContain(kept.email);
    expect(list!.text).not.toContain(erased.email);
  });
});
