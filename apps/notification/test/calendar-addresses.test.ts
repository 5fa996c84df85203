import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually, type ReceivedMail } from '@scheduling/testing';
import ICAL from 'ical.js';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crmId, providerReference, startStack, type TestStack } from './stack.ts';

let stack: TestStack;
let bookings = 0;

beforeAll(async () => {
  stack = await startStack({ timings: { firstRetryMs: 50, pollMs: 50 } });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

const owned = { crmId, providerReference };

/** Books a new appointment for a new customer. Returns what names them. */
async function book(email?: string): Promise<{ reference: string; email: string }> {
  const reference = `b${(bookings += 1)}`;
  const booking = { reference, email: email ?? `${reference}@example.com` };
  await stack.customers.createCustomer({ ...owned, customerReference: reference, userName: 'Ann', email: booking.email, language: 'en' });
  const time = { start: '2030-07-01T10:00', end: '2030-07-01T11:00', capacity: 5, acceptBookings: true };
  await stack.appointments.createAppointment({ ...owned, ...time, reference, resourceReference: 'room', productReference: 'yoga', participations: [] });
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: true };
  await stack.participations.createParticipation({ ...owned, ...flags, reference, appointmentReference: reference, customerReference: reference, state: ParticipationState.BOOKED });
  return booking;
}

const setProvider = (email: string) => stack.identity.updateProvider({ crmId, reference: providerReference, email });
const delay = ({ reference }: { reference: string }) =>
  stack.appointments.updateAppointment({ ...owned, appointmentReference: reference, start: '2030-07-01T12:00', end: '2030-07-01T13:00', noAddress: false, sendMails: true });
const cancel = ({ reference }: { reference: string }) =>
  stack.participations.updateParticipation({ ...owned, participationReference: reference, state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: true });

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
  it.each([
    ['changes its address', 'desk@yoga.example', 'new@yoga.example'],
    ['has no address at first', '', 'new@yoga.example'],
  ])('is the same in every mail, and its sender, although the provider %s', async (_, first, second) => {
    await setProvider(first);
    const booking = await book();
    await arrivals(booking.email, 1);
    await setProvider(second);
    await delay(booking);
    await arrivals(booking.email, 2);
    await setProvider('last@yoga.example');
    await cancel(booking);
    const mails = await arrivals(booking.email, 3);
    const calendars = mails.map(readCalendar);
    const { uid } = calendars[0]!;
    const common = { uid, organizer: 'mailto:hello@studio.example', sentBy: undefined, name: 'Yoga & Co', attendee: `MAILTO:${booking.email}` };
    expect(calendars).toEqual(['REQUEST', 'REQUEST', 'CANCEL'].map((method) => ({ ...common, method })));
    for (const { parsed } of mails) expect(parsed.from!.value[0]!.address).toBe('hello@studio.example');
    // The person's reply to a mail still goes to the provider.
    expect(mails.map(({ parsed }) => parsed.replyTo?.value[0]?.address)).toEqual([first || undefined, second, 'last@yoga.example']);
  });

  it('is still the provider if it was when the event came into the calendar', async () => {
    await setProvider('desk@yoga.example');
    const [cancelled, deleted] = [await book(), await book()];
    await Promise.all([arrivals(cancelled.email, 1), arrivals(deleted.email, 1)]);
    await sql`UPDATE organizer_rule SET sender_since = now() + interval '1 minute'`.execute(stack.database.kysely);
    await cancel(cancelled);
    await stack.customers.deleteCustomer({ ...owned, customerReference: deleted.reference, ignoreFutureAppointments: true });
    for (const { email } of [cancelled, deleted]) {
      const [, last] = await arrivals(email, 2);
      expect(readCalendar(last!)).toMatchObject({ method: 'CANCEL', organizer: 'mailto:desk@yoga.example', sentBy: 'mailto:hello@studio.example' });
    }
    await sql`UPDATE organizer_rule SET sender_since = '-infinity'`.execute(stack.database.kysely);
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
    expect(readCalendar(mail!)).toMatchObject({ organizer: 'mailto:hallo@xn--gre-6ka8i.example', attendee: 'MAILTO:ann@xn--bcher-kva.example' });
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
