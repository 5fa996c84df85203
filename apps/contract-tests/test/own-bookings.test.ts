import { waitUntil } from '@scheduling/embedded';
import ical from 'ical.js';
import { randomInt } from 'node:crypto';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import {
  createCrm,
  createPractice,
  createTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import type { Booking } from './answers.ts';
import { readFeed } from './feed.ts';

let crm: TestCrm;
let practice: Practice;
/** Each test is another visitor. */
let address: string;
beforeEach(async () => {
  crm = await createCrm({ name: 'Studio CRM' });
  practice = await createPractice(crm);
  address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
  await sendLinks();
});

async function sendLinks(): Promise<void> {
  const { status, text } = await crm.put(`${practice.at}/booking-rules`, { selfService: true });
  expect(status, text).toBe(200);
}

interface BookedPlace {
  reference: string;
  email: string;
  timeslotReference: string;
}

/** Times are offered for three months from now. */
const date = Temporal.Now.plainDateISO('Europe/Berlin').add({ days: 10 }).toString();

/** Books the first place of a timeslot of two hours for a new customer. */
async function book(state = 'BOOKED'): Promise<BookedPlace> {
  const timeslotReference = await createTimeslot(practice, { start: `${date}T10:00`, end: `${date}T12:00` });
  const name = unique('guest');
  const email = `${name}@customers.example`;
  const { status, body, text } = await crm.post<{ booking: Booking }>(`${practice.at}/bookings`, {
    reference: unique('b'),
    timeslotReference,
    start: `${date}T10:00`,
    productReference: practice.product,
    productName: 'Haircut',
    state,
    customer: { customerReference: `${name}@test`, userName: 'Ada Byron', email, language: 'en' },
  });
  expect(status, text).toBe(201);
  return { reference: body.booking.participation.reference, email, timeslotReference };
}

const participationAt = (reference: string): string => practice.at + path`/participations/${reference}`;

async function linkOf(reference: string): Promise<string> {
  const { status, body, text } = await crm.get<{ link: { url: string } }>(`${participationAt(reference)}/link`);
  expect(status, text).toBe(200);
  return body.link.url;
}

async function read(reference: string): Promise<Record<string, unknown>> {
  return (await crm.get<{ participation: Record<string, unknown> }>(participationAt(reference))).body.participation;
}

interface Opened {
  status: number;
  body: string;
  /** Of the page itself, or of the one that it leads to. */
  url: string;
}

/** Opens a page, and follows a redirection, as a browser does. */
async function open(url: string, form?: Record<string, string>): Promise<Opened> {
  const response = await fetch(url, {
    headers: { 'x-forwarded-for': address, 'accept-language': 'en', ...(form && { origin: new URL(url).origin }) },
    ...(form !== undefined && { method: 'POST', body: new URLSearchParams(form) }),
  });
  return { status: response.status, body: await response.text(), url: response.url };
}

/** Presses the button of a page. */
function press({ body, url }: Opened, form: Record<string, string> = {}): Promise<Opened> {
  const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(body)!;
  return open(new URL(action.replaceAll('&amp;', '&'), url).href, form);
}

/** Follows the link with this text. */
function follow({ body, url }: Opened, text: string): Promise<Opened> {
  const link = [...body.matchAll(/<a [^>]*?href="([^"]+)"[^>]*>(.*?)<\/a>/g)].find(([, , name]) =>
    name!.endsWith(text),
  );
  expect(link, `a link "${text}" in ${body}`).toBeDefined();
  return open(new URL(link![1]!.replaceAll('&amp;', '&'), url).href);
}

describe('the person of a booking', () => {
  it('cancels it by the link in the mail, and both sides learn of it', async () => {
    const { reference, email } = await book();
    const [confirmation] = await waitForMails(email, 1);
    const url = await linkOf(reference);
    expect(confirmation!.text).toContain(url);

    const page = await open(url);
    expect(page.body).toContain('<h1>Your booking is confirmed</h1>');
    const cancelled = await press(await follow(page, 'Cancel'), { message: 'I am ill.' });
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toContain('<h1>Cancelled</h1>');
    expect(await read(reference)).toMatchObject({ state: 'CANCELED' });
    const [, cancellation] = await waitForMails(email, 2);
    expect(cancellation!.subject).toContain('Haircut');
    const event = await waitUntil(async () => (await readFeed(crm)).find(({ actor }) => actor === 'person'), {
      what: 'the event of the person',
      timeoutMs: 60_000,
      intervalMs: 100,
    });
    expect(event).toMatchObject({ type: 'participation.changed', data: { reference, state: 'CANCELED' } });
  });

  it('moves it, and the calendar file and the mail name the new time for the same event', async () => {
    const { reference, email } = await book();
    const url = await linkOf(reference);
    const before = await eventIn(url);
    const week = await follow(await open(url), 'Move');
    const moved = await press(await follow(week, '10:30–11:00'));
    expect(moved.body).toContain('Your booking has been moved.');
    expect(moved.body).toContain('10:30–11:00');
    const after = await eventIn(url);
    expect(after.uid).toBe(before.uid);
    expect(after.sequence).toBeGreaterThan(before.sequence);
    expect(after.startDate.toString()).toBe(`${date}T10:30:00`);
    const [, mail] = await waitForMails(email, 2);
    expect(mail!.text).toContain('10:30–11:00');
    expect(mail!.text).toContain(url);
  });

  it('says that they will be there, which the CRM can read', async () => {
    const { reference } = await book();
    expect(await read(reference)).not.toHaveProperty('attendanceConfirmedAt');
    const page = await press(await follow(await open(await linkOf(reference)), 'I will be there'));
    expect(page.body).toContain('You have said that you will be there.');
    expect(await read(reference)).toMatchObject({
      state: 'BOOKED',
      attendanceConfirmedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/) as string,
    });
  });

  it('withdraws a request', async () => {
    const { reference } = await book('REQUESTED');
    const page = await open(await linkOf(reference));
    expect(page.body).toContain('<h1>Your request</h1>');
    await press(await follow(page, 'Cancel'));
    expect(await read(reference)).toMatchObject({ state: 'CANCELED' });
  });

  it('cannot open it by the link any more once their data are erased', async () => {
    const { reference } = await book();
    const url = await linkOf(reference);
    const { customerReference } = await read(reference);
    const { status } = await crm.delete(practice.at + path`/customers/${String(customerReference)}`, undefined, {
      query: { ignoreFutureAppointments: true },
    });
    expect(status).toBe(204);
    const { status: afterwards, body } = await open(url);
    expect(afterwards).toBe(404);
    expect(body).toBe((await open(`${inject('stack').page}/booking/unknown`)).body);
  });
});

/** The event in the calendar file of a page. */
async function eventIn(url: string): Promise<ical.Event> {
  const { body } = await open(`${url}/calendar.ics`);
  return new ical.Event(new ical.Component(ical.parse(body) as unknown[]).getFirstSubcomponent('vevent')!);
}
