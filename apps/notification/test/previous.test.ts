import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMail } from './read-mail.ts';
import { crmId, type NotificationUnderTest, providerReference, startNotification } from './notification-under-test.ts';

const owned = { crmId, providerReference };
let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification({ timings: { firstRetryMs: 50, pollMs: 50 } });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

interface Person {
  name: string;
  email: string;
}

const at = (hour: number) => ({ start: `2030-07-01T${hour}:00`, end: `2030-07-01T${hour + 1}:00` });
const period = (hour: number) => `Monday, 1 July 2030, ${hour}:00–${hour + 1}:00`;

async function createAppointment(reference: string, hour: number): Promise<void> {
  const fixed = {
    capacity: 5,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description: 'Yoga',
    participations: [],
  };
  await stack.appointments.createAppointment({
    ...owned,
    ...fixed,
    ...at(hour),
    reference,
    address: { kind: { $case: 'text', value: 'Room 1' } },
  });
}

/** Somebody who has booked for 10:00. */
async function book({
  state = ParticipationState.BOOKED,
  sendMails = true,
}: { state?: ParticipationState; sendMails?: boolean } = {}): Promise<Person> {
  const name = `before-${(names += 1)}`;
  const email = `${name}@example.com`;
  await stack.customers.createCustomer({ ...owned, customerReference: name, userName: name, email, language: 'en' });
  await createAppointment(name, 10);
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails };
  const [appointmentReference, customerReference] = [name, name];
  await stack.participations.createParticipation({
    ...owned,
    ...flags,
    reference: name,
    appointmentReference,
    customerReference,
    state,
  });
  return { name, email };
}

async function update({ name }: Person, changes: object, sendMails = true): Promise<void> {
  await stack.appointments.updateAppointment({
    ...owned,
    appointmentReference: name,
    noAddress: false,
    sendMails,
    ...changes,
  });
}

async function move({ name }: Person, hour: number): Promise<void> {
  const value = `${name}-at-${hour}`;
  await createAppointment(value, hour);
  await stack.bookings.changeBooking({
    ...owned,
    participationReference: name,
    place: { $case: 'appointmentReference', value },
    ignoreNotice: true,
    sendMails: true,
  });
}

const mailsTo = ({ email }: Person) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map(readMail);

/** Once there are so many. */
async function receive(person: Person, count: number) {
  await eventually(() => expect(mailsTo(person)).toHaveLength(count));
  return mailsTo(person);
}

async function listed({ name }: Person) {
  const key = { ...owned, participationReference: name };
  return (await stack.participationMails.listParticipationMails(key)).mails;
}

async function reject(person: Person, change: () => Promise<void>): Promise<void> {
  const before = (await listed(person)).length;
  stack.smtp.trouble = (recipient) => (recipient === person.email ? { at: 'rcpt', code: 550 } : undefined);
  await change();
  await eventually(async () =>
    expect((await listed(person)).slice(before)).toMatchObject([{ state: 'MAIL_STATE_FAILED' }]),
  );
  stack.smtp.trouble = () => undefined;
}

describe('a mail about a change', () => {
  it('shows the time, the place and the title that the mail before has said, and so does a copy', async () => {
    const person = await book();
    await receive(person, 1);
    await update(person, { ...at(12), address: { kind: { $case: 'text', value: 'Room 2' } } });
    expect((await receive(person, 2))[1]).toMatchObject({ earlier: [period(10), 'Room 1'], now: period(12) });
    await update(person, { description: 'Pilates' });
    expect((await receive(person, 3))[2]).toMatchObject({ earlier: ['Yoga'], now: period(12) });
    await move(person, 14);
    expect((await receive(person, 4))[3]).toMatchObject({
      template: 'booking-moved',
      earlier: ['Pilates', period(12), 'Room 2'],
      now: period(14),
    });
    const { id: mailId } = (await listed(person)).at(-1)!;
    await eventually(async () => expect((await listed(person)).at(-1)).toMatchObject({ state: 'MAIL_STATE_SENT' }));
    await stack.participationMails.resendMail({ ...owned, participationReference: person.name, mailId });
    const [, , , moved, copy] = await receive(person, 5);
    expect(copy!.text).toBe(moved!.text);
  });

  it('about a request shows it, too', async () => {
    const person = await book({ state: ParticipationState.REQUESTED });
    await receive(person, 1);
    await move(person, 12);
    expect((await receive(person, 2))[1]).toMatchObject({ template: 'request-changed', earlier: [period(10)] });
  });

  it('shows what was before the changes of which no mail was sent', async () => {
    const person = await book();
    await receive(person, 1);
    await reject(person, () => move(person, 12));
    await move(person, 14);
    expect((await receive(person, 2))[1]).toMatchObject({ earlier: [period(10)], now: period(14) });
  });

  it('shows what the mail before has said when several were written during an outage, whatever they are about', async () => {
    const person = await book();
    await receive(person, 1);
    await stack.smtp.stop();
    for (const hour of [11, 12, 13, 14, 15, 16, 17, 18]) {
      const before = (await listed(person)).length;
      await update(person, at(hour));
      await eventually(async () => expect(await listed(person)).toHaveLength(before + 1));
    }
    await stack.smtp.start();
    await eventually(() => expect(mailsTo(person).at(-1)).toMatchObject({ now: period(18) }));
    await eventually(async () =>
      expect((await listed(person)).every(({ state }) => state !== 'MAIL_STATE_PENDING')).toBe(true),
    );
    const mails = mailsTo(person);
    for (const [index, { earlier, now }] of mails.entries()) {
      if (index === 0) continue;
      const told = mails[index - 1]!.now;
      expect(earlier).toEqual(now === told ? [] : [told]);
    }
    // The first of them was written before the second change.
    expect(mails[1]).toMatchObject({ earlier: [period(10)] });
  });

  it('shows nothing if the last change had no mail, or one that may have arrived', async () => {
    const [silent, uncertain] = [await book(), await book()];
    for (const person of [silent, uncertain]) await receive(person, 1);
    await update(silent, at(12), false);
    await reject(uncertain, () => update(uncertain, at(12)));
    const { id } = (await listed(uncertain)).at(-1)!;
    await stack.database.kysely.updateTable('mail').set({ uncertain: true }).where('id', '=', id).execute();
    for (const person of [silent, uncertain]) {
      await update(person, at(14));
      expect((await receive(person, 2))[1]).toMatchObject({ earlier: [], now: period(14) });
      await update(person, at(16));
      expect((await receive(person, 3))[2]).toMatchObject({ earlier: [period(14)], now: period(16) });
    }
  });

  it('shows nothing if the booking was never confirmed by a mail that could be sent, but it does if none was wanted', async () => {
    const wanted = await book({ sendMails: false });
    await move(wanted, 12);
    expect((await receive(wanted, 1))[0]).toMatchObject({ earlier: [period(10)] });
    stack.smtp.trouble = () => ({ at: 'rcpt', code: 550 });
    const rejected = await book();
    await eventually(async () => expect(await listed(rejected)).toMatchObject([{ state: 'MAIL_STATE_FAILED' }]));
    stack.smtp.trouble = () => undefined;
    await move(rejected, 12);
    expect((await receive(rejected, 1))[0]).toMatchObject({ earlier: [] });
  });

  it('shows what was before the first change without a sent mail if the record of the last one is deleted', async () => {
    const person = await book();
    await receive(person, 1);
    await eventually(async () => expect(await listed(person)).toMatchObject([{ state: 'MAIL_STATE_SENT' }]));
    await reject(person, () => move(person, 12));
    const { id } = (await listed(person))[0]!;
    await stack.database.kysely.deleteFrom('mail').where('id', '=', id).execute();
    await move(person, 14);
    expect((await receive(person, 2))[1]).toMatchObject({ earlier: [period(10)], now: period(14) });
  });
});
