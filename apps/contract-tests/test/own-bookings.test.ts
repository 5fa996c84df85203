import { waitUntil } from '@scheduling/embedded';
import ical from 'ical.js';
import { randomInt } from 'node:crypto';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { type Answer, path } from '@scheduling/test-stack/client';
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
import { createBlock } from './blocks.ts';
import { readFeed } from './feed.ts';
import { sentMails } from './mails.ts';

let crm: TestCrm;
let practice: Practice;
/** Each test is another visitor. */
let address: string;
beforeEach(async () => {
  crm = await createCrm({ name: 'Studio CRM' });
  practice = await createPractice(crm);
  address = newAddress();
  await setRules({ selfService: true });
});

function newAddress(): string {
  return `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
}

async function setRules(rules: Record<string, unknown>): Promise<void> {
  const { status, text } = await crm.put(`${practice.at}/booking-rules`, rules);
  expect(status, text).toBe(200);
}

interface BookedPlace {
  reference: string;
  email: string;
  resource: string;
  timeslotReference: string;
}

/** Times are offered for three months from now. */
const date = Temporal.Now.plainDateISO('Europe/Berlin').add({ days: 10 }).toString();

/** Books the first place of a timeslot of two hours for a new customer. */
async function book(state = 'BOOKED'): Promise<BookedPlace> {
  const resourceReference = unique('room');
  const timeslotReference = await createTimeslot(practice, {
    resourceReference,
    start: `${date}T10:00`,
    end: `${date}T12:00`,
  });
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
  return {
    reference: body.booking.participation.reference,
    email,
    resource: resourceReference,
    timeslotReference,
  };
}

const participationAt = (reference: string): string => practice.at + path`/participations/${reference}`;

async function linkOf(reference: string): Promise<string> {
  const { status, body, text } = await crm.get<{ link: { url: string } }>(`${participationAt(reference)}/link`);
  expect(status, text).toBe(200);
  return body.link.url;
}

async function readParticipation(reference: string): Promise<Record<string, unknown>> {
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
  const [, start = ''] = /<input type="hidden" name="start" value="([^"]+)">/.exec(body)!;
  return open(new URL(action.replaceAll('&amp;', '&'), url).href, { start, ...form });
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
    expect(await readParticipation(reference)).toMatchObject({ state: 'CANCELED' });
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

  it('cannot move it to a time that is blocked, also if the block was made meanwhile', async () => {
    const { reference, resource } = await book();
    const url = await linkOf(reference);
    const question = await follow(await follow(await open(url), 'Move'), '10:30–11:00');
    await createBlock({ ...practice, resource }, { start: `${date}T10:30`, end: `${date}T11:00` });
    const refused = await press(question);
    expect([refused.status, refused.body]).toEqual([409, expect.stringContaining('no longer available')]);
    const week = await follow(await open(url), 'Move');
    expect(week.body).not.toContain('10:30–11:00');
    expect((await press(await follow(week, '11:00–11:30'))).body).toContain('Your booking has been moved.');
  });

  it('says that they will be there, which the CRM can read', async () => {
    const { reference } = await book();
    expect(await readParticipation(reference)).not.toHaveProperty('attendanceConfirmedAt');
    const page = await press(await follow(await open(await linkOf(reference)), 'I will be there'));
    expect(page.body).toContain('You have said that you will be there.');
    expect(await readParticipation(reference)).toMatchObject({
      state: 'BOOKED',
      attendanceConfirmedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/) as string,
    });
  });

  it('withdraws a request', async () => {
    const { reference } = await book('REQUESTED');
    const page = await open(await linkOf(reference));
    expect(page.body).toContain('<h1>Your request</h1>');
    await press(await follow(page, 'Cancel'));
    expect(await readParticipation(reference)).toMatchObject({ state: 'CANCELED' });
  });

  it('cannot open it by the link any more once their data are erased', async () => {
    const { reference } = await book();
    const url = await linkOf(reference);
    const { customerReference } = await readParticipation(reference);
    const { status } = await crm.delete(practice.at + path`/customers/${String(customerReference)}`, undefined, {
      query: { ignoreFutureAppointments: true },
    });
    expect(status).toBe(204);
    const { status: afterwards, body } = await open(url);
    expect(afterwards).toBe(404);
    expect(body).toBe((await open(`${inject('stack').page}/booking/unknown`)).body);
  });
});

interface SandboxMail {
  id: string;
  template: string;
  text: string;
  html: string;
}

describe('a program that opens every link of every mail, and all that is behind it', () => {
  beforeEach(async () => {
    crm = await createCrm({ sandbox: true });
    practice = await createPractice(crm);
    await setRules({ selfService: true, reminders: [60] });
  });

  it('twice, changes nothing', async () => {
    const references = await causeMails();
    await setClock('09:40');
    const mails = await waitForSandboxMails(17);
    expect(new Set(mails.map(({ template }) => template)).size).toBe(11);
    const read = async () => ({
      participations: await Promise.all(references.map(readParticipation)),
      byPerson: (await readFeed(crm)).filter(({ actor }) => actor === 'person'),
    });
    const before = await read();
    expect(before.byPerson).not.toEqual([]);

    const links = mails.flatMap(linksInMail);
    const opened = await openAll(links);
    expect(await openAll(links)).toEqual(opened);
    for (const page of ['/cancel', '/attend', '/move', '/move/confirm', '/calendar.ics'])
      expect([...opened].some((url) => new URL(url).pathname.endsWith(page))).toBe(true);

    // Whatever opening them has caused is there when this is.
    const { reference } = await book();
    await sentMails(practice, reference);
    expect(await read()).toEqual(before);
    const [confirmation, ...others] = await waitForSandboxMails(18);
    expect(confirmation).toMatchObject({ template: 'booking-confirmed' });
    expect(others).toEqual(mails);
  });

  /** Bookings with a mail of every kind that has a link, except reminders, which are due. */
  async function causeMails(): Promise<string[]> {
    /** Makes a change once the mails about those before it have been sent. */
    const change = async (reference: string, mails: number, request: () => Promise<Answer>): Promise<void> => {
      await sentMails(practice, reference, mails);
      const { status, text } = await request();
      expect(status, text).toBe(200);
    };
    const move = (reference: string, state: string) => () => crm.post(participationAt(reference), { state });
    const appointmentOf = async (reference: string): Promise<string> =>
      String((await readParticipation(reference))['appointmentReference']);
    const rename = (reference: string) => async () =>
      crm.put(practice.at + path`/appointments/${await appointmentOf(reference)}`, { description: 'Colouring' });

    const [booked, cancelled, ended] = [await book(), await book(), await book()];
    const requests = [];
    for (let count = 0; count < 4; count += 1) requests.push((await book('REQUESTED')).reference);
    const [requested, confirmed, declined, withdrawn] = requests as [string, string, string, string];
    await change(booked.reference, 1, () =>
      crm.post(practice.at + path`/bookings/${booked.reference}`, {
        timeslotReference: booked.timeslotReference,
        start: `${date}T10:30`,
      }),
    );
    await change(booked.reference, 2, rename(booked.reference));
    await change(cancelled.reference, 1, move(cancelled.reference, 'CANCELED'));
    await change(ended.reference, 1, async () =>
      crm.delete(`${practice.at}/appointments`, { appointmentReference: await appointmentOf(ended.reference) }),
    );
    await change(requested, 1, rename(requested));
    await change(confirmed, 1, move(confirmed, 'BOOKED'));
    await change(declined, 1, move(declined, 'CANCELED'));
    await sentMails(practice, withdrawn, 1);
    await press(await follow(await open(await linkOf(withdrawn)), 'Cancel'));
    await sentMails(practice, booked.reference, 3);
    await sentMails(practice, confirmed, 2);
    return [booked, cancelled, ended].map(({ reference }) => reference).concat(requests);
  }

  async function setClock(time: string): Promise<void> {
    const now = Temporal.PlainDateTime.from(`${date}T${time}`).toZonedDateTime('Europe/Berlin').toInstant().toString();
    expect(await crm.put('/sandbox/clock', { now })).toMatchObject({ status: 200 });
  }

  /** The newest one first. */
  function waitForSandboxMails(count: number): Promise<SandboxMail[]> {
    return waitUntil(
      async () => {
        const { body: mails } = await crm.get<SandboxMail[]>('/sandbox/mails', { query: { limit: 20 } });
        return mails.length >= count && mails;
      },
      { what: `${count} mails`, timeoutMs: 60_000, intervalMs: 100 },
    );
  }

  function linksInMail({ text, html, template }: SandboxMail): string[] {
    const inText = [...text.matchAll(/https?:\/\/\S+/g)].map(([link]) => link);
    const links = [...inText, ...linksIn(html, inject('stack').page)].filter(isPage);
    expect(links.length, template).toBeGreaterThan(1);
    return links;
  }

  /** Opens pages and those that they lead to, from anywhere, and returns their addresses. */
  async function openAll(links: string[], opened = new Set<string>()): Promise<Set<string>> {
    for (const link of links) {
      if (opened.has(link)) continue;
      opened.add(link);
      address = newAddress();
      await fetch(link, { method: 'HEAD', headers: { 'x-forwarded-for': address } });
      const { status, body, url } = await open(link);
      expect(status, link).toBe(200);
      await openAll(linksIn(body, url).filter(isPage), opened);
    }
    return opened;
  }

  /** The links and the forms of a document. */
  function linksIn(html: string, base: string): string[] {
    return [...html.matchAll(/(?:href|action)="([^"]+)"/g)].map(
      ([, link]) => new URL(link!.replaceAll('&amp;', '&'), base).href,
    );
  }

  /** Without the same pages in other languages, which would take three times as long. */
  function isPage(link: string): boolean {
    return link.startsWith(`${inject('stack').page}/booking/`) && !link.includes('lang=');
  }
});

/** The event in the calendar file of a page. */
async function eventIn(url: string): Promise<ical.Event> {
  const { body } = await open(`${url}/calendar.ics`);
  return new ical.Event(new ical.Component(ical.parse(body) as unknown[]).getFirstSubcomponent('vevent')!);
}
