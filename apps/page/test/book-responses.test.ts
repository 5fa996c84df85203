import { whilePaused } from '@scheduling/testing';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '../src/visit-limit.ts';
import {
  buttonsOf,
  choose,
  massage,
  offerTimes,
  openPageOf,
  person,
  press,
  type ProviderUnderTest,
  yoga,
} from './booking-page-under-test.ts';
import {
  freshAddress,
  type OpenOptions,
  type PageUnderTest,
  setClock,
  startPage,
  timeTwice,
} from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(() => setClock(page, '2031-05-28T08:00:00Z'));

const embedOn = { origins: ['https://studio.example', 'https://www.studio.example:8443'] };

/** Every kind of page of a provider, by what it is. */
async function allPages(provider: ProviderUnderTest) {
  const { path } = provider;
  const week = await page.open(`${path}?offer=massage`);
  const { answer: form, location } = await choose(page, `${path}?offer=massage`, '10:00–10:30');
  const taken = await press(page, week.body, '10:00–10:30');
  const invalid = await press(page, form.body, 'Book', { ...person, email: 'x' });
  const done = await press(page, form.body, 'Book', person);
  return {
    offers: await page.open(path),
    week,
    taken,
    form,
    invalid,
    done: await page.open(done.location!),
    over: await page.open(location.replace(/form\/[^?]*/, `done/${randomUUID()}`)),
  };
}

describe('an address without a booking page', () => {
  it('is answered with the same bytes, whatever is wrong with it', async () => {
    const expected = await page.open(`/book/${randomUUID()}`);
    expect([expected.status, expected.heading]).toEqual([404, 'Page not found']);
    expect(expected.body).toContain('There is no booking page at this address.');
    expect(expected.body).not.toMatch(/<header|Legal notice/);
    expect(await accessibilityFindings(expected.body)).toEqual([]);
    const { path } = await openPageOf(page);
    const { path: off } = await openPageOf(page, { page: false, embedOn });
    const choice = randomUUID();
    const query = '?offer=massage&at=ada&slot=2031-06-02T08:00:00.000Z';
    const requests: [path: string, options?: OpenOptions][] = [
      ['/book'],
      ['/book/'],
      ['/book?lang=en'],
      ['/book/nobody'],
      [`/book/${'a'.repeat(12_000)}`],
      [`${path}%00`],
      [path.toUpperCase().replace('/BOOK', '/book')],
      [`${path}/`],
      [`${path}/nothing`],
      [`${path}/form`],
      [`${path}/form/x${query}`],
      ['/book/%ff'],
      ...[off, `/book/${randomUUID()}`].flatMap((each): [string, OpenOptions?][] => [
        [each],
        [each + query],
        [`${each}/hold`],
        [`${each}/form/${choice}`],
        [`${each}/form/${choice}${query}`],
        [`${each}/done/${choice}`],
        [`${each}/hold`, { form: { offer: 'massage', slot: '2031-06-02T08:00:00.000Z' } }],
        [`${each}/form/${choice}${query}`, { form: person }],
        [`${each}/form/${choice}${query}`, { form: {} }],
        [each, { form: {} }],
        [each, { method: 'DELETE' }],
      ]),
    ];
    for (const [each, options] of requests) {
      const { status, body, headers } = await page.open(each, options);
      expect([status, body], each).toEqual([404, expected.body]);
      expect(headers.get('content-security-policy'), each).toBe(expected.headers.get('content-security-policy'));
    }
    const german = await page.open(`${off}?lang=de`);
    expect(german.body).toContain('Unter dieser Adresse gibt es keine Buchungsseite.');
    expect((await page.open('/book/%ff?lang=de')).body).toBe(german.body);
    expect((await page.open('/book', { headers: { 'accept-language': 'de' } })).body).toBe(german.body);
  });

  it('makes those wait who have opened too many', async () => {
    const headers = { 'x-forwarded-for': freshAddress() };
    for (let count = 0; count < 20; count += 1) await page.open(`/book/${randomUUID()}`, { headers });
    const startedMs = performance.now();
    await page.open(`/book/${randomUUID()}`, { headers });
    expect(performance.now() - startedMs).toBeGreaterThan(950);
  });
});

describe('every page of a provider', () => {
  it('is in no frame, unless its rules name the site', async () => {
    const framesOf = async (rules: Parameters<typeof openPageOf>[1]) => {
      const provider = await openPageOf(page, { ...rules, offers: { offers: [massage, yoga] } });
      await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
      const pages = Object.entries(await allPages(provider));
      return pages.map(([name, { headers, status, body }]) => {
        expect(headers.has('x-frame-options')).toBe(false);
        expect(body).toContain('--brand: #7a1f5c');
        const [frames] = /frame-ancestors [^;]*/.exec(headers.get('content-security-policy')!)!;
        return `${name} ${status} ${frames}`;
      });
    };
    const named = (frames: string) =>
      ['offers 200', 'week 200', 'taken 409', 'form 200', 'invalid 400', 'done 200', 'over 404'].map(
        (each) => `${each} frame-ancestors ${frames}`,
      );
    expect(await framesOf({})).toEqual(named("'none'"));
    expect(await framesOf({ embedOn })).toEqual(named(embedOn.origins.join(' ')));
  });

  it('has one style, no script, no cookie, and nothing of other hosts', async () => {
    const provider = await openPageOf(page, { embedOn, offers: { offers: [massage, yoga] } });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
    for (const [name, { headers, body }] of Object.entries(await allPages(provider))) {
      expect(body, name).not.toMatch(/<script|<img|<link|\son\w+=|url\(/);
      expect(body.match(/<h1>/g), name).toHaveLength(1);
      expect(Buffer.byteLength(/<style>(.*)<\/style>/s.exec(body)![1]!)).toBeLessThanOrEqual(6_144);
      expect(headers.has('set-cookie')).toBe(false);
      expect(Object.fromEntries(headers), name).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'same-origin',
        'x-robots-tag': 'noindex',
      });
      const policy = headers.get('content-security-policy')!.split('; ');
      expect(policy).toEqual(expect.arrayContaining(["default-src 'none'", "form-action 'self'", "base-uri 'none'"]));
    }
  });

  it.each(['', '&zone=America/New_York&lang=de'])('is small: a week of 200 times%s', async (query) => {
    const provider = await openPageOf(page, { offers: { offers: [massage] } });
    for (let day = 2; day <= 6; day += 1)
      await offerTimes(page, provider, `2031-06-0${day}T02:00`, `2031-06-0${day}T22:00`);
    const { body } = await page.open(`${provider.path}?offer=massage${query}`);
    expect(buttonsOf(body)).toHaveLength(200);
    expect(gzipSync(body).length).toBeLessThanOrEqual(12_288);
  });

  it('changes nothing when it is only opened', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { location } = await choose(page, provider.path, '10:00–10:30');
    const before = buttonsOf((await page.open(provider.path)).body);
    for (const address of [location, location.replace('/form/', '/done/'), `${provider.path}/hold`])
      for (const method of ['GET', 'HEAD']) await page.open(address, { method });
    expect(buttonsOf((await page.open(provider.path)).body)).toEqual(before);
  });
});

describe('a network', () => {
  it('that chooses or books too often has to wait, and others do not', async () => {
    const { path } = await openPageOf(page);
    const headers = { 'x-forwarded-for': freshAddress() };
    const query = '?offer=massage&at=ada&slot=noon';
    for (const [address, { max, windowMs }] of [
      [`${path}/hold`, limits.choices],
      [`${path}/form/${randomUUID()}${query}`, limits.bookings],
    ] as const) {
      for (let count = 0; count < max; count += 1)
        expect((await page.open(address, { form: {}, headers })).status).toBe(303);
      const refused = await page.open(address, { form: {}, headers });
      expect([refused.status, refused.heading]).toEqual([429, 'Too many attempts']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(windowMs / 2_000);
      expect(await accessibilityFindings(refused.body)).toEqual([]);
      expect((await page.open(address, { form: {} })).status).toBe(303);
      expect((await page.open(path, { headers })).status).toBe(200);
    }
  });

  it('that opens too many pages has to wait, but not for the pages of links', async () => {
    const { path } = await openPageOf(page);
    const headers = { 'x-forwarded-for': freshAddress() };
    const open = () => page.open(path, { headers });
    for (let count = 0; count < limits.bookingPages.max; count += 20)
      await Promise.all(Array.from({ length: 20 }, open));
    const refused = await page.open(`${path}?lang=de`, { headers });
    expect([refused.status, refused.heading]).toEqual([429, 'Zu viele Versuche']);
    expect((await page.open('/booking/unknown', { headers })).status).toBe(404);
    expect((await page.open(path)).status).toBe(200);
  });
});

describe('while a service is down', () => {
  it('says of a form that was sent that nothing is lost', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
    const { answer, location } = await choose(page, provider.path, '10:00–10:30');
    const lost = 'Nothing that you have typed is lost, and it is booked only once.';
    await whilePaused([page.services.calendar.pid], async () => {
      const sent = await press(page, answer.body, 'Book', person);
      expect([sent.status, sent.heading]).toEqual([503, 'Temporarily unavailable']);
      expect(sent.body).toContain(lost);
      expect(await accessibilityFindings(sent.body)).toEqual([]);
      expect((await page.open(location)).body).not.toContain(lost);
    });
    expect((await press(page, answer.body, 'Book', person)).status).toBe(303);
  });

  it.each(['calendar', 'identity'] as const)('%s: the page says so within 2 s, in no frame', async (name) => {
    const { path } = await openPageOf(page, { embedOn });
    await whilePaused([page.services[name].pid], async () => {
      const { status, heading, headers, body, ms } = await timeTwice(() => page.open(path));
      expect([status, heading]).toEqual([503, 'Temporarily unavailable']);
      expect(ms).toBeLessThan(2_300);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(await accessibilityFindings(body)).toEqual([]);
    });
  });
});
