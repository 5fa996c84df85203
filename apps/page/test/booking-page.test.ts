import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import ICAL from 'ical.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  basePath,
  book,
  cancelByCrm,
  owner,
  type PageUnderTest,
  setClock,
  setRules,
  startPage,
} from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(async () => {
  await setClock(page, '2031-05-28T08:00:00Z');
  await setRules(page, 120);
});

const { RESERVED, REQUESTED, BOOKED, CANCELED } = ParticipationState;

/** The texts of the links in the part of a page with the buttons. */
function buttonsOf(body: string): string[] {
  const [, part = ''] = /<div class="actions">(.*?)<\/div>/s.exec(body) ?? [];
  return [...part.matchAll(/<a [^>]*>(.*?)<\/a>/g)].map(([, text]) => text!);
}

/** What a person reads, without the marks around it. */
function textOf(body: string): string {
  return body
    .replace(/<style>.*<\/style>/s, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

describe('the page of a booking', () => {
  it('says what, when, where, with whom, for how much, for whom, and until when it can be changed', async () => {
    const { path } = await book(page);
    const { status, body } = await page.open(path);
    expect(status).toBe(200);
    const text = textOf(body);
    for (const part of [
      'What Massage &amp; more',
      'When Monday, 2 June 2031 10:00–10:30 Central European Summer Time (UTC+2)',
      'Where Lange Straße 1 10115 Berlin',
      'With Praxis &lt;Blum&gt; hello@blum.example +49 30 1234567',
      'Price €45.00',
      'Name Ada Lovelace',
      'Changes You can move or cancel it until Mon, 2 Jun 2031, 08:00 (CEST).',
      'We use your data to arrange this appointment.',
      'Legal notice Praxis Blum Berlin Studio CRM Ltd London',
    ])
      expect(text).toContain(part);
    expect(body).toContain('href="tel:+49301234567"');
    expect(body).toContain('href="mailto:hello@blum.example"');
    expect(body).toContain('<a href="https://crm.example/privacy">');
    expect(body).toContain('--brand: #7a1f5c');
    expect(text).toContain('Test: this is not a real booking');
  });

  it('shows as much of the address as its owner needs', async () => {
    const { path } = await book(page);
    const { body } = await page.open(path);
    expect(body).not.toContain('ada@example.com');
    expect(textOf(body)).toMatch(/Email address \S*a\S*@\S+/);
  });

  it.each([
    {
      state: BOOKED,
      now: '2031-05-28T08:00:00Z',
      heading: 'Your booking is confirmed',
      changes: ['I will be there', 'Move', 'Cancel'],
      file: true,
    },
    {
      state: BOOKED,
      now: '2031-06-02T07:00:00Z',
      heading: 'Your booking is confirmed',
      changes: ['I will be there'],
      file: true,
    },
    { state: BOOKED, now: '2031-06-02T09:00:00Z', heading: 'Your booking', changes: [], file: false },
    { state: REQUESTED, now: '2031-05-28T08:00:00Z', heading: 'Your request', changes: ['Move', 'Cancel'], file: true },
    { state: REQUESTED, now: '2031-06-02T09:00:00Z', heading: 'Not confirmed', changes: [], file: false },
    { state: RESERVED, now: '2031-05-28T08:00:00Z', heading: 'Held for you', changes: [], file: false },
    { state: CANCELED, now: '2031-05-28T08:00:00Z', heading: 'Cancelled', changes: [], file: false },
  ])('of one that is $state at $now offers $changes', async ({ state, now, heading, changes, file }) => {
    const { path, reference } = await book(page, { state: state === CANCELED ? BOOKED : state });
    if (state === CANCELED) await cancelByCrm(page, reference);
    await setClock(page, now);
    const answer = await page.open(path);
    expect([answer.status, answer.heading]).toEqual([200, heading]);
    expect(buttonsOf(answer.body)).toEqual([...changes, ...(file ? ['Add to my calendar'] : [])]);
    expect(await accessibilityFindings(answer.body)).toEqual([]);
  });

  it('says until when it is held', async () => {
    const { path } = await book(page, { state: RESERVED });
    expect(textOf((await page.open(path)).body)).toMatch(/Held until Wed, 28 May 2031, 10:0[0-9] \(CEST\)\./);
  });

  it('names phone and mail when it is too late for a change', async () => {
    const { path } = await book(page);
    await setClock(page, '2031-06-02T07:00:00Z');
    expect(textOf((await page.open(path)).body)).toContain(
      'It is too late to move or cancel this booking here. Please contact Praxis &lt;Blum&gt;: hello@blum.example +49 30 1234567',
    );
  });

  it('shows the cancelled state of the whole appointment', async () => {
    const { path, appointmentReference } = await book(page);
    await page.appointments.cancelAppointment({ ...owner, appointmentReference });
    expect((await page.open(path)).heading).toBe('Cancelled');
  });

  it('has an outline without gaps, no script, and nothing of other hosts', async () => {
    const { body } = await page.open((await book(page)).path);
    expect(body).not.toMatch(/<script|<img|<link|\son\w+=|url\(/);
    expect(body.match(/<h1>/g)).toHaveLength(1);
    expect(/<style>(.*)<\/style>/s.exec(body)![1]!.length).toBeLessThan(6_144);
  });
});

describe('the language', () => {
  it('is that of the address, and all links of the page keep it', async () => {
    const { path } = await book(page);
    const { body } = await page.open(`${path}?lang=de`);
    expect(body).toContain('<html lang="de">');
    expect(textOf(body)).toContain('Montag, 2. Juni 2031 10:00–10:30 Uhr Mitteleuropäische Sommerzeit (UTC+2)');
    const own = [...body.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!).filter((href) => href.startsWith('/'));
    expect(own).toEqual(
      ['attend', 'move', 'cancel', 'calendar.ics'].map((name) => `${basePath}${path}/${name}?lang=de`),
    );
    expect(body).toContain('<a href="?lang=en" lang="en" hreflang="en">English</a>');
  });

  it('is that of the browser, then that of the person', async () => {
    const { path } = await book(page, { customer: { language: 'de' } });
    expect((await page.open(path, { headers: { 'accept-language': 'en' } })).body).toContain('<html lang="en">');
    const { body } = await page.open(path, { headers: { 'accept-language': 'fr' } });
    expect(body).toContain('<html lang="de">');
    expect(body).toContain(`href="${basePath}${path}/cancel"`);
  });
});

describe('the calendar file', () => {
  it('is the event of the mails, leads back to the page, and asks nobody for an answer', async () => {
    const { path, reference } = await book(page);
    const { id } = await page.participations.getParticipation({ ...owner, participationReference: reference });
    const { status, headers, body } = await page.open(`${path}/calendar.ics`);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/calendar; charset=utf-8; method=PUBLISH']);
    const calendar = new ICAL.Component(ICAL.parse(body) as unknown[]);
    const event = new ICAL.Event(calendar.getFirstSubcomponent('vevent')!);
    expect(calendar.getFirstPropertyValue('method')).toBe('PUBLISH');
    expect(event.uid).toBe(`${id}@participation.scheduling`);
    expect(event.sequence).toBe(1);
    expect(event.summary).toBe('Massage & more');
    expect(event.location).toBe('Lange Straße 1, 10115 Berlin');
    expect(event.startDate.toJSDate().toISOString()).toBe('2031-06-02T08:00:00.000Z');
    expect(event.component.getFirstPropertyValue('status')).toBe('CONFIRMED');
    const url = `${page.pageUrl}${path}`;
    expect(event.component.getFirstPropertyValue('url')).toBe(url);
    expect(event.description).toContain(url);
    expect(event.component.getAllProperties('attendee')).toEqual([]);
    expect(event.component.getAllProperties('organizer')).toEqual([]);
  });

  it('of a request is tentative, and of a cancelled booking cancelled', async () => {
    const { path } = await book(page, { state: REQUESTED });
    expect((await page.open(`${path}/calendar.ics`)).body).toContain('STATUS:TENTATIVE');
    await page.open(`${path}/cancel`, { form: {} });
    expect((await page.open(`${path}/calendar.ics`)).body).toContain('STATUS:CANCELLED');
  });
});
