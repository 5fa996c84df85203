import { Confirmation } from '@scheduling/contracts/calendar/v1';
import { findPendingBookings } from '@scheduling/testing';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  buttonsOf,
  changeRules,
  choose,
  linksOf,
  massage,
  offerTimes,
  openPageOf,
  participationsOf,
  press,
  type ProviderUnderTest,
  textOf,
} from './booking-page-under-test.ts';
import { limits } from '../src/visit-limit.ts';
import { type Answer, freshAddress, type PageUnderTest, setClock, startPage } from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(() => setClock(page, '2031-05-28T08:00:00Z'));

interface Sent {
  provider: ProviderUnderTest;
  /** What the form has led to. */
  answer: Answer;
  email: string;
  /** The path that the link in the mail has. */
  link: string;
}

/** Sends the form of a page whose rules want a confirmation by mail. */
async function send(rules: Parameters<typeof openPageOf>[1] = {}, button = 'Book'): Promise<Sent> {
  const provider = await openPageOf(page, { verifyEmail: true, ...rules });
  await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
  const { answer: form } = await choose(page, provider.path, '10:00–10:30');
  const email = `${randomUUID()}@example.com`;
  const answer = await press(page, form.body, button, { name: 'Grace Hopper', email, message: 'Second floor?' });
  return { provider, answer, email, link: await linkOf(email) };
}

async function linkOf(email: string): Promise<string> {
  const pendingBookingId = (await findPendingBookings(page.services.calendar, email)).at(-1)!;
  const { token } = await page.bookingPages.getPendingBookingMailData({ crmId: 'sandbox', pendingBookingId });
  return `/book/confirm/${token}`;
}

/** Presses a button of the page that is at a path: its form has no address of its own. */
function pressAt(path: string, body: string, button: string): Promise<Answer> {
  return press(page, body.replace('<form method="post"', `<form method="post" action="${path}"`), button);
}

const day = 'Monday 2 June';

describe('a booking that is confirmed by a mail', () => {
  it('is not made by the form, which says to whom the mail goes', async () => {
    const { provider, answer, email } = await send();
    expect(answer.status).toBe(303);
    const done = await page.open(answer.location!);
    expect([done.status, done.heading]).toEqual([200, `Open the email to ${email}`]);
    expect(done.body).toContain(`<title>Open the email to ${email}</title>`);
    expect(textOf(done.body)).toContain('Nothing is booked yet.');
    expect(linksOf(done.body).get('Back to the booking page')).toBe(provider.path);
    expect(await accessibilityFindings(done.body)).toEqual([]);
    expect((await page.open(`${answer.location}?lang=de`)).heading).toBe(`Öffnen Sie die E‑Mail an ${email}`);
    expect((await participationsOf(page, provider)).map(({ state }) => state)).toEqual(['RESERVED']);
  });

  it('is made by the button of the page that the mail links to, and by nothing else', async () => {
    const { provider, link } = await send();
    await page.open(link, { method: 'HEAD' });
    const question = await page.open(link);
    expect([question.status, question.heading]).toEqual([200, 'Book this appointment?']);
    expect(textOf(question.body)).toContain(
      'What Massage <deep> When Monday, 2 June 2031 10:00–10:30 Central European Summer Time (UTC+2)',
    );
    expect(textOf(question.body)).toContain('Price €45.00 Name Grace Hopper');
    expect(await accessibilityFindings(question.body)).toEqual([]);
    expect(question.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect((await participationsOf(page, provider)).map(({ state }) => state)).toEqual(['RESERVED']);

    const { status, location } = await pressAt(link, question.body, 'Book');
    expect(status).toBe(303);
    expect((await page.open(location!)).heading).toBe('Booked');
    const booked = (await participationsOf(page, provider)).filter(({ state }) => state === 'BOOKED');
    expect(booked).toMatchObject([{ name: 'Grace Hopper', note: 'Second floor?' }]);
    // Again, it leads to the same.
    expect((await pressAt(link, question.body, 'Book')).location).toBe(location);
    expect(await page.open(link)).toMatchObject({ status: 303, location });
  });

  it('may be a request, and is in German, too', async () => {
    const { provider, link } = await send({ confirmation: Confirmation.REQUESTED }, 'Send request');
    const question = await page.open(`${link}?lang=de`);
    expect(question.heading).toBe('Diese Anfrage senden?');
    expect(await accessibilityFindings(question.body)).toEqual([]);
    const { location } = await pressAt(`${link}?lang=de`, question.body, 'Anfrage senden');
    expect((await page.open(location!)).heading).toBe('Anfrage gesendet');
    expect(await participationsOf(page, provider)).toMatchObject([{ state: 'REQUESTED' }]);
  });

  it('whose time was taken meanwhile can be booked at another one', async () => {
    const { provider, link } = await send();
    const question = await page.open(link);
    await setClock(page, '2031-05-28T08:20:00Z');
    await changeRules(page, provider, { verifyEmail: false });
    const other = await choose(page, provider.path, '10:00–10:30');
    await press(page, other.answer.body, 'Book', { name: 'Other', email: 'other@example.com' });
    for (const answer of [await page.open(link), await pressAt(link, question.body, 'Book')]) {
      expect([answer.status, answer.heading]).toEqual([409, 'Book this appointment?']);
      expect(answer.body).toContain('<title>Error: Book this appointment?</title>');
      expect(textOf(answer.body)).toContain('This time is no longer available Please choose another one.');
      expect(buttonsOf(answer.body).map(({ name }) => name)).toEqual(
        ['10:30–11:00', '11:00–11:30', '11:30–12:00'].map((time) => `Book ${day}, ${time}`),
      );
      expect(await accessibilityFindings(answer.body)).toEqual([]);
    }
    const taken = await page.open(link);
    const { location } = await pressAt(link, taken.body, '11:00–11:30');
    expect(textOf((await page.open(location!)).body)).toContain('When Monday, 2 June 2031 11:00–11:30');
  });

  it('asks again if the price has changed', async () => {
    const { provider, link } = await send();
    const question = await page.open(link);
    await setClock(page, '2031-05-28T08:20:00Z');
    await changeRules(page, provider, { offers: { offers: [{ ...massage, price: { value: 50, currency: 'EUR' } }] } });
    const changed = await pressAt(link, question.body, 'Book');
    expect([changed.status, changed.heading]).toEqual([409, 'Book this appointment?']);
    expect(textOf(changed.body)).toContain('The price has changed in the meantime It is €50.00 now.');
    expect(await accessibilityFindings(changed.body)).toEqual([]);
    expect((await pressAt(link, changed.body, 'Book')).status).toBe(303);
  });

  it('is not made for a person who has as many as the rules permit', async () => {
    const { provider, link, email } = await send({ maxPerPerson: 1 });
    const again = await choose(page, provider.path, '11:00–11:30');
    await press(page, again.answer.body, 'Book', { name: 'Grace Hopper', email });
    const second = await linkOf(email);
    expect((await pressAt(link, (await page.open(link)).body, 'Book')).status).toBe(303);
    const refused = await pressAt(second, (await page.open(second)).body, 'Book');
    expect([refused.status, refused.heading]).toEqual([409, 'No more bookings possible']);
    expect(refused.body).toContain('href="tel:+49301234567"');
    expect(await accessibilityFindings(refused.body)).toEqual([]);
  });

  it('has a link that is answered like any other that does not work, once there is no such page', async () => {
    const expected = await page.open('/book/confirm/unknown');
    expect([expected.status, expected.heading]).toEqual([404, 'This link does not work']);
    expect(await accessibilityFindings(expected.body)).toEqual([]);
    const { provider, link } = await send();
    const at = link.length - 30;
    const damaged = link.slice(0, at) + (link[at] === 'A' ? 'B' : 'A') + link.slice(at + 1);
    await changeRules(page, provider, { page: false });
    for (const [path, options] of [
      [damaged],
      [link],
      [link, { form: {} }],
      [`${link}/x`],
      ['/book/confirm/%ff'],
    ] as const)
      expect(await page.open(path, options), path).toMatchObject({ status: 404, body: expected.body });
    // A link of another purpose is none.
    expect((await page.open(link.replace('/book/confirm', '/booking'))).status).toBe(404);
  });
});

it('a form of a person who has as many bookings as the rules permit is answered as one to be confirmed', async () => {
  const provider = await openPageOf(page, { maxPerPerson: 1 });
  await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
  const person = { name: 'Grace Hopper', email: `${randomUUID()}@example.com` };
  const headings = [];
  for (const time of ['10:00–10:30', '11:00–11:30']) {
    const { answer } = await choose(page, provider.path, time);
    const { location } = await press(page, answer.body, 'Book', person);
    headings.push((await page.open(location!)).heading);
  }
  expect(headings).toEqual(['Booked', `Open the email to ${person.email}`]);
});

describe('a form without the rule', () => {
  it('that a program has filled in, whose fields nobody sees, is to be confirmed', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
    const { answer } = await choose(page, provider.path, '10:00–10:30');
    expect(await accessibilityFindings(answer.body)).toEqual([]);
    const typed = { name: 'Program', email: `${randomUUID()}@example.com`, website: 'https://spam.example' };
    const { location } = await press(page, answer.body, 'Book', typed);
    expect((await page.open(location!)).heading).toMatch(/^Open the email to/);
    expect((await participationsOf(page, provider)).map(({ state }) => state)).toEqual(['RESERVED']);
  });

  it('is to be confirmed once more come from a network than persons send', async () => {
    const provider = await openPageOf(page, { maxPerPerson: 100 });
    await offerTimes(page, provider, '2031-06-02T08:00', '2031-06-02T18:00');
    const headers = { 'x-forwarded-for': freshAddress() };
    const headings = [];
    for (let sent = 0; sent <= limits.bookings.usual; sent += 1) {
      const { answer } = await choose(page, `${provider.path}?date=2031-06-02`, 'Monday', headers);
      const typed = { name: 'Grace Hopper', email: `${randomUUID()}@example.com` };
      const { location } = await press(page, answer.body, 'Book', typed, headers);
      headings.push((await page.open(location!)).heading!.replace(/ to .*/, ''));
    }
    expect(headings).toEqual([...Array.from({ length: limits.bookings.usual }, () => 'Booked'), 'Open the email']);
  });
});

it('with the rule, nobody learns from the page who is a customer, has too many bookings, or gets no more mails', async () => {
  const provider = await openPageOf(page, { maxPerPerson: 1, confirmation: Confirmation.REQUESTED });
  await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T18:00');
  const [known, unknown] = ['known', 'other'].map((name) => `${name}-${randomUUID()}@example.com`);
  const { answer } = await choose(page, provider.path, '10:00–10:30');
  await press(page, answer.body, 'Send request', { name: 'Ada', email: known! });
  await changeRules(page, provider, { verifyEmail: true });
  const form = (await choose(page, provider.path, '12:00–12:30')).location;
  const send = async (email: string): Promise<string[]> => {
    const choice = randomUUID();
    const path = form.replace(/form\/[^?]+/, `form/${choice}`);
    const open = await page.open(path);
    const sent = await press(page, open.body, 'Send request', { name: 'Ada', email });
    const done = await page.open(sent.location!);
    // What depends on the request, and not on the address.
    const texts = [open.body, `${sent.status} ${sent.location}`, done.body].map((text) =>
      text
        .replaceAll(choice, 'choice')
        .replaceAll(email, 'address')
        .replace(/done\/[\w-]+/, 'done/receipt'),
    );
    return [...texts, ...[sent, done].map(({ headers }) => [...headers.keys()].join())];
  };
  const first = await send(unknown!);
  for (const email of [known!, known!, known!, known!, unknown!, known!]) expect(await send(email)).toEqual(first);
});
