import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually, type ReceivedMail } from '@scheduling/testing';
import ICAL from 'ical.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crmId, providerReference, startNotification, type NotificationUnderTest } from './notification-under-test.ts';

let stack: NotificationUnderTest;
let bookings = 0;

beforeAll(async () => {
  stack = await startNotification({ timings: { firstRetryMs: 50, pollMs: 50 } });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

const owned = { crmId, providerReference };

/** Books a new appointment for a new customer. Returns what names them. */
async function book(email?: string): Promise<{ reference: string; email: string }> {
  const reference = `b${(bookings += 1)}`;
  const booking = { reference, email: email ?? `${reference}@example.com` };
  await stack.customers.createCustomer({
    ...owned,
    customerReference: reference,
    userName: 'Ann',
    email: booking.email,
    language: 'en',
  });
  const time = { start: '2030-07-01T10:00', end: '2030-07-01T11:00', capacity: 5, acceptBookings: true };
  await stack.appointments.createAppointment({
    ...owned,
    ...time,
    reference,
    resourceReference: 'room',
    productReference: 'yoga',
    participations: [],
  });
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: true };
  await stack.participations.createParticipation({
    ...owned,
    ...flags,
    reference,
    appointmentReference: reference,
    customerReference: reference,
    state: ParticipationState.BOOKED,
  });
  return booking;
}

const setProvider = (email: string) => stack.identity.updateProvider({ crmId, reference: providerReference, email });
const delay = ({ reference }: { reference: string }) =>
  stack.appointments.updateAppointment({
    ...owned,
    appointmentReference: reference,
    start: '2030-07-01T12:00',
    end: '2030-07-01T13:00',
    noAddress: false,
    sendMails: true,
  });
const cancel = ({ reference }: { reference: string }) =>
  stack.participations.updateParticipation({
    ...owned,
    participationReference: reference,
    state: ParticipationState.CANCELED,
    ignoreCapacity: false,
    sendMails: true,
  });

/** Resolves with the mails to an address, once there are so many. */
const arrivals = (recipient: string, count: number): Promise<ReceivedMail[]> =>
  eventually(() => {
    const mails = stack.smtp.mails.filter(({ recipients }) => recipients.includes(recipient));
    expect(mails).toHaveLength(count);
    return mails;
  });

/** What another program reads in the calendar of a mail. */
function readCalendar({ parsed }: ReceivedMail) {
  const calendar = new ICAL.Component(ICAL.parse(parsed.attachments[0]!.content.toString()) as unknown[]);
  const event = calendar.getFirstSubcomponent('vevent')!;
  const organizer = event.getFirstProperty('organizer')!;
  return {
    method: calendar.getFirstPropertyValue('method'),
    uid: event.getFirstPropertyValue('uid'),
    organizer: organizer.getFirstValue(),
    sentBy: organizer.getParameter('sent-by'),
    name: organizer.getParameter('cn'),
    attendee: event.getFirstPropertyValue('attendee'),
  };
}

describe('the organizer of an event in a calendar', () => {
  const sender = 'hello@studio.example';

  it.each([
    { what: 'the provider changes its address', first: 'desk@yoga.example', organizer: 'desk@yoga.example' },
    { what: 'the provider has no address at first', first: '', organizer: sender },
    {
      what: 'the provider has the address of the person at first',
      first: 'same@example.com',
      organizer: sender,
      email: 'same@example.com',
    },
  ])('is the same in every mail, although $what', async ({ first, organizer, email }) => {
    await setProvider(first);
    const booking = await book(email);
    await arrivals(booking.email, 1);
    await setProvider('new@yoga.example');
    await delay(booking);
    await arrivals(booking.email, 2);
    await setProvider('last@yoga.example');
    await stack.admin.updateCrm({ crmId, senderAddress: 'other@studio.example' });
    await cancel(booking);
    const mails = await arrivals(booking.email, 3);
    await stack.admin.updateCrm({ crmId, senderAddress: sender });
    const calendars = mails.map(readCalendar);
    const common = {
      uid: calendars[0]!.uid,
      organizer: `mailto:${organizer}`,
      name: 'Yoga & Co',
      attendee: `MAILTO:${booking.email}`,
    };
    expect(calendars).toMatchObject(['REQUEST', 'REQUEST', 'CANCEL'].map((method) => ({ ...common, method })));
    const senders = mails.map(({ parsed }) => parsed.from!.value[0]!.address!);
    expect(senders).toEqual([sender, sender, 'other@studio.example']);
    expect(calendars.map(({ sentBy }) => sentBy)).toEqual(
      senders.map((address) => (address === organizer ? undefined : `mailto:${address}`)),
    );
  });

  it('is the same in the last mail to a deleted person', async () => {
    await setProvider('desk@yoga.example');
    const booking = await book();
    await arrivals(booking.email, 1);
    await setProvider('new@yoga.example');
    await stack.customers.deleteCustomer({
      ...owned,
      customerReference: booking.reference,
      ignoreFutureAppointments: true,
    });
    const [, last] = await arrivals(booking.email, 2);
    expect(readCalendar(last!)).toMatchObject({
      method: 'CANCEL',
      organizer: 'mailto:desk@yoga.example',
      sentBy: 'mailto:hello@studio.example',
    });
  });

  it('is remembered until 30 days after the end of the appointment, whenever that was moved', async () => {
    await setProvider('desk@yoga.example');
    const booking = await book();
    await arrivals(booking.email, 1);
    const { id } = await stack.participations.getParticipation({ ...owned, participationReference: booking.reference });
    const keepUntil = async () =>
      (
        await stack.database.kysely
          .selectFrom('eventOrganizer')
          .select('keepUntil')
          .where('participationId', '=', id)
          .executeTakeFirstOrThrow()
      ).keepUntil.toISOString();
    expect(await keepUntil()).toBe('2030-07-31T09:00:00.000Z');
    await delay(booking);
    await arrivals(booking.email, 2);
    expect(await keepUntil()).toBe('2030-07-31T11:00:00.000Z');
  });
});

describe('a mail to and from addresses that are not ASCII', () => {
  it('is ASCII as far as the domains go', async () => {
    await setProvider('desk@müller.example');
    await stack.admin.updateCrm({ crmId, senderAddress: 'hallo@größe.example' });
    const booking = await book('ann@bücher.example');
    const [mail] = await arrivals(booking.email, 1);
    await stack.admin.updateCrm({ crmId, senderAddress: 'hello@studio.example' });
    expect(mail!.raw).toMatch(/^\p{ASCII}+$/u);
    expect(readCalendar(mail!)).toMatchObject({
      organizer: 'mailto:desk@xn--mller-kva.example',
      sentBy: 'mailto:hallo@xn--gre-6ka8i.example',
      attendee: 'MAILTO:ann@xn--bcher-kva.example',
    });
    const { messageId, html } = mail!.parsed;
    expect(messageId).toMatch(/^<[0-9a-f]{40}@xn--gre-6ka8i\.example>$/);
    expect(html).toContain('href="mailto:desk@xn--mller-kva.example"');
  });

  it('has the local part in UTF-8 in its envelope and its headers only (RFC 6531), and percent-encoded in URIs (RFC 6068)', async () => {
    await book('jörg+a@bücher.example');
    const [mail] = await arrivals('jörg+a@bücher.example', 1);
    const beyondAscii = mail!.raw.split('\r\n').filter((line) => !/^\p{ASCII}*$/u.test(line));
    expect(beyondAscii).toEqual([expect.stringMatching(/^To: .*<jörg\+a@bücher\.example>$/)]);
    expect(readCalendar(mail!).attendee).toBe('MAILTO:j%C3%B6rg+a@xn--bcher-kva.example');
  });
});
