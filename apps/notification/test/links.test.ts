import { ParticipationState, PersonServiceService } from '@scheduling/contracts/calendar/v1';
import { type ClientOf, createClient } from '@scheduling/rpc';
import { runWithContext } from '@scheduling/runtime';
import { eventually, longTimeout, type ReceivedMail } from '@scheduling/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventOf } from './diary.ts';
import { crmId, providerReference, startNotification, type NotificationUnderTest } from './notification-under-test.ts';

const { REQUESTED, BOOKED, CANCELED } = ParticipationState;
const resources = new AsyncDisposableStack();
const owned = { crmId, providerReference };
let stack: NotificationUnderTest;
let persons: ClientOf<typeof PersonServiceService>;
let bookings = 0;

beforeAll(async () => {
  stack = resources.use(await startNotification({ timings: { firstRetryMs: 50, pollMs: 50 } }));
  persons = resources.use(createClient(PersonServiceService, 'calendar', stack.services.calendar.address, longTimeout));
}, 180_000);
afterAll(() => resources.disposeAsync());

beforeEach(() => setRules({ selfService: true, changeNotice: 60 }));

const setRules = (rules: { selfService?: boolean; changeNotice?: number }) =>
  stack.bookings.updateBookingRules({ ...owned, noHorizon: false, ...rules });

interface Booking {
  reference: string;
  email: string;
}

/** A customer with a booking of its own appointment. */
async function book(state: ParticipationState = BOOKED): Promise<Booking> {
  const reference = `b${(bookings += 1)}`;
  const booking = { reference, email: `${reference}@example.com` };
  await stack.customers.createCustomer({
    ...owned,
    customerReference: reference,
    userName: 'Ann',
    email: booking.email,
    language: 'en',
  });
  await createAppointment(reference);
  await stack.participations.createParticipation({
    ...owned,
    reference,
    appointmentReference: reference,
    customerReference: reference,
    state,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
  });
  return booking;
}

const createAppointment = (reference: string, embedded: { reference: string; email: string }[] = []) =>
  stack.appointments.createAppointment({
    ...owned,
    reference,
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 5,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    participations: embedded.map((each) => ({ ...each, name: 'Ann', state: BOOKED })),
  });

/** Resolves with the mails to an address, once there are so many. */
const arrivals = (recipient: string, count: number): Promise<ReceivedMail[]> =>
  eventually(() => {
    const mails = stack.smtp.mails.filter(({ recipients }) => recipients.includes(recipient));
    expect(mails).toHaveLength(count);
    return mails;
  });

/** The last of so many mails to an address. */
const arrival = async (recipient: string, count: number): Promise<ReceivedMail> =>
  (await arrivals(recipient, count)).at(-1)!;

function tokenIn({ parsed }: ReceivedMail): string {
  return /^https:\/\/page\.example\/booking\/([\w-]+)$/m.exec(parsed.text!)![1]!;
}

const linkOf = async (participationReference: string): Promise<string> =>
  (await stack.participations.getParticipationLink({ ...owned, participationReference })).token;

const asPerson = <T>(act: () => T): T => runWithContext({ requestId: 'of-the-person', actor: 'person' }, act);

describe('the link in a mail about a booking', () => {
  it('leads to it, and says until when the person can change it', async () => {
    const { reference, email } = await book();
    const mail = await arrival(email, 1);
    const url = `https://page.example/booking/${await linkOf(reference)}`;
    expect(mail.parsed.text).toContain(
      `Move or cancel:\n${url}\n\nPossible until Mon, 1 Jul 2030, 09:00 (CEST).\nAfter that, please contact Yoga & Co: desk@yoga.example, +49 30 1\n`,
    );
    expect(mail.parsed.html).toContain(`href="${url}"`);
    const event = eventOf(mail.parsed.attachments[0]!.content.toString());
    expect(event.component.getFirstPropertyValue('url')).toBe(url);
    expect(event.description).toContain(`Move or cancel: ${url}\n`);
    const { booking } = await persons.getOwnBooking({ token: tokenIn(mail) });
    expect(booking).toMatchObject({ name: 'Ann', state: BOOKED });
  });

  it('is for the address that the mail goes to, and dead when the person has another one', async () => {
    const { reference, email } = await book();
    const first = tokenIn(await arrival(email, 1));
    await stack.customers.updateCustomer({ ...owned, customerReference: reference, email: `new-${email}` });
    await expect(persons.getOwnBooking({ token: first })).rejects.toMatchObject({ code: 'link.not_found' });
    const { mails } = await stack.participationMails.listParticipationMails({
      ...owned,
      participationReference: reference,
    });
    await stack.participationMails.resendMail({
      ...owned,
      participationReference: reference,
      mailId: mails[0]!.id,
    });
    const second = tokenIn(await arrival(`new-${email}`, 1));
    expect(second).not.toBe(first);
    expect((await persons.getOwnBooking({ token: second })).booking).toMatchObject({ state: BOOKED });
  });

  it('is for a participant without a customer, too, and shows what has ended', async () => {
    const [reference, email] = ['embedded', 'embedded@example.com'];
    await createAppointment(reference, [{ reference, email }]);
    await stack.appointments.cancelAppointment({ ...owned, appointmentReference: reference });
    const mail = await arrival(email, 1);
    expect(mail.parsed.text).toContain(`Ihre Buchung:\nhttps://page.example/booking/${await linkOf(reference)}\n`);
    expect(mail.parsed.text).not.toContain('Möglich bis');
    expect((await persons.getOwnBooking({ token: tokenIn(mail) })).booking).toMatchObject({ state: CANCELED });
  });

  it('is not there without the rule: then the mail says whom to ask', async () => {
    await setRules({ selfService: false });
    const { email } = await book();
    const { parsed } = await arrival(email, 1);
    expect(parsed.text).toContain('\nTo move or cancel, please contact Yoga & Co: desk@yoga.example, +49 30 1\n');
    expect(`${parsed.text}${String(parsed.html)}${parsed.attachments[0]!.content.toString()}`).not.toMatch(
      /page\.example|Possible until/,
    );
  });

  it('is not in the last mail to a deleted person', async () => {
    const { reference, email } = await book();
    await arrival(email, 1);
    await stack.customers.deleteCustomer({ ...owned, customerReference: reference, ignoreFutureAppointments: true });
    const { parsed } = await arrival(email, 2);
    expect(parsed.subject).toContain('Your data was deleted');
    expect(`${parsed.text}${String(parsed.html)}`).not.toContain('page.example');
  });
});

describe('a person who cancels by the link', () => {
  it('is told so, with the message to the provider as their own', async () => {
    const { email } = await book();
    const token = tokenIn(await arrival(email, 1));
    await asPerson(() => persons.cancelOwnBooking({ token, message: 'I am ill' }));
    const { parsed } = await arrival(email, 2);
    expect(parsed.subject).toBe('Cancelled: Mon, 1 Jul 2030, 10:00 – Yoga & Co');
    expect(parsed.text).toContain('\nYou have cancelled this booking.\n');
    expect(parsed.text).toContain('\nYour message to Yoga & Co:\n> I am ill\n');
    expect(parsed.text).toContain(`\nYour booking:\nhttps://page.example/booking/${token}\n`);
    expect(eventOf(parsed.attachments[0]!.content.toString()).description).not.toContain('I am ill');
  });

  it('has withdrawn a request, which was not declined', async () => {
    const { reference, email } = await book(REQUESTED);
    const mail = await arrival(email, 1);
    expect(mail.parsed.text).toContain('\nYou can cancel the request until Mon, 1 Jul 2030, 10:00 (CEST).\n');
    await asPerson(() => persons.cancelOwnBooking({ token: tokenIn(mail) }));
    const { parsed } = await arrival(email, 2);
    expect(parsed.subject).toBe('Request cancelled: Mon, 1 Jul 2030, 10:00 – Yoga & Co');
    expect(parsed.text).toContain('You have cancelled your request\n');
    const { mails } = await stack.participationMails.listParticipationMails({
      ...owned,
      participationReference: reference,
    });
    expect(mails.map(({ template }) => template)).toEqual(['request-received', 'request-withdrawn']);
  });
});
