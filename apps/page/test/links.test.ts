import { whilePaused } from '@scheduling/testing';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '../src/visit-limit.ts';
import {
  book,
  type BookingUnderTest,
  freshAddress,
  type OpenOptions,
  owner,
  type PageUnderTest,
  setClock,
  startPage,
  timeTwice,
} from './page-under-test.ts';

let page: PageUnderTest;
let booking: BookingUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(async () => {
  await setClock(page, '2031-05-28T08:00:00Z');
  booking = await book(page);
});

const origin = 'https://book.example';

async function stateOf({ reference }: BookingUnderTest): Promise<string> {
  const { json } = await page.participations.getParticipation({ ...owner, participationReference: reference });
  return (JSON.parse(json.toString()) as { state: string }).state;
}

/** The token with one of its characters replaced. */
function damaged(path: string): string {
  const at = path.length - 30;
  return path.slice(0, at) + (path[at] === 'A' ? 'B' : 'A') + path.slice(at + 1);
}

describe('a link that does not work', () => {
  it('is answered with the same bytes, whatever is wrong with it', async () => {
    const expected = await page.open('/booking/unknown');
    expect([expected.status, expected.heading]).toEqual([404, 'This link does not work']);
    expect(expected.body).toContain('It is not valid, or no longer valid. Please use the link in the latest email.');
    expect(expected.body).not.toMatch(/<header|Legal notice/);
    const { path } = booking;
    const gone = await book(page);
    await page.participations.updateParticipation({
      ...owner,
      participationReference: gone.reference,
      state: 'PARTICIPATION_STATE_DELETED',
      ignoreCapacity: false,
      sendMails: false,
    });
    const requests: [path: string, options?: OpenOptions][] = [
      ['/booking'],
      ['/booking/'],
      [damaged(path)],
      [`${path}A`],
      [`${path}/`],
      [`${path}/nothing`],
      [`${path}/cancel/nothing`],
      [`${path}%00`],
      ['/booking/%ff'],
      ['/booking/a%2Fb/cancel'],
      [`/booking/${'a'.repeat(999)}`],
      [`/booking/${'a'.repeat(12_000)}`],
      [`/booking/${'a'.repeat(12_000)}/move/confirm?date=x`],
      [gone.path],
      ...['cancel', 'attend', 'move', 'move/confirm?appointment=x', 'calendar.ics'].map((page): [string] => [
        `${gone.path}/${page}`,
      ]),
      ...['cancel', 'attend', 'move/confirm?appointment=x'].map((page): [string, OpenOptions] => [
        `${gone.path}/${page}`,
        { form: {} },
      ]),
      [path, { form: {} }],
      [`${path}/cancel`, { method: 'DELETE' }],
      [`${path}/calendar.ics`, { method: 'PUT' }],
    ];
    for (const [each, options] of requests) {
      const { status, body } = await page.open(each, options);
      expect([status, body], each).toEqual([404, expected.body]);
    }
    expect(await accessibilityFindings(expected.body)).toEqual([]);
  });

  it('is answered in the language of the request', async () => {
    const german = await page.open('/booking/unknown?lang=de');
    expect(german.heading).toBe('Dieser Link funktioniert nicht');
    expect((await page.open('/booking/%ff?lang=de')).body).toBe(german.body);
    const headers = { 'accept-language': 'de' };
    expect((await page.open('/booking/unknown', { headers })).body).toBe(german.body);
  });

  it('dies when the person has another address', async () => {
    await using other = await startAlone();
    const { path, reference } = await book(other);
    const { json } = await other.participations.getParticipation({ ...owner, participationReference: reference });
    const { customerReference } = JSON.parse(json.toString()) as { customerReference: string };
    expect((await other.open(path)).status).toBe(200);
    await other.customers.updateCustomer({ ...owner, customerReference, email: 'correct@example.com' });
    expect((await other.open(path)).status).toBe(404);
  });

  it('makes its address wait once it has opened too many', async () => {
    const headers = { 'x-forwarded-for': freshAddress() };
    const open = async (): Promise<number> => {
      const startedMs = performance.now();
      expect((await page.open('/booking/unknown', { headers })).status).toBe(404);
      return performance.now() - startedMs;
    };
    for (let count = 0; count < 20; count += 1) await open();
    expect(await open()).toBeGreaterThan(950);
  });
});

/** A page whose customers no other test changes. */
const startAlone = startPage;

describe('an address', () => {
  it('that opens too many pages has to wait; the networks of others do not', async () => {
    const headersOf = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    for (let count = 0; count < limits.links.max; count += 1)
      expect((await page.open(booking.path, headersOf(`2001:db8:0:1::${count.toString(16)}`))).status).toBe(200);
    const refused = await page.open(booking.path, headersOf('2001:db8:0:1:ffff::'));
    expect([refused.status, refused.heading]).toEqual([429, 'Too many pages']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await accessibilityFindings(refused.body)).toEqual([]);
    expect((await page.open(`${booking.path}?lang=de`, headersOf('2001:db8:0:1::'))).heading).toBe('Zu viele Seiten');
    expect((await page.open(booking.path, headersOf('2001:db8:0:2::1'))).status).toBe(200);
  });

  it('that nothing is at is not found', async () => {
    for (const path of ['/', '/bookings', '/robots.txt']) {
      const { status, heading, body } = await page.open(path);
      expect([status, heading]).toEqual([404, 'Page not found']);
      expect(await accessibilityFindings(body)).toEqual([]);
    }
    expect((await page.open('/?lang=de')).heading).toBe('Seite nicht gefunden');
  });
});

describe('every response', () => {
  it('is for one person: not stored, not found by search engines, and without anything of other hosts', async () => {
    for (const path of [booking.path, `${booking.path}/calendar.ics`, '/booking/unknown', '/booking/%ff', '/nothing']) {
      const { headers, body } = await page.open(path);
      expect(Object.fromEntries(headers), path).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'x-robots-tag': 'noindex',
      });
      const policy = headers.get('content-security-policy')!.split('; ');
      expect(policy).toEqual(
        expect.arrayContaining(["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"]),
      );
      expect(policy.filter((part) => part.startsWith('style-src'))).toEqual([
        expect.stringMatching(/^style-src 'sha256-[\w+/=]+'$/),
      ]);
      expect(headers.has('set-cookie')).toBe(false);
      if (path !== `${booking.path}/calendar.ics`) expect(body).toContain('<meta name="robots" content="noindex">');
    }
  });

  it('to GET and HEAD changes nothing, whatever a scanner opens', async () => {
    const opened = new Set<string>();
    const scan = async (path: string): Promise<void> => {
      if (opened.has(path) || opened.size > 40) return;
      opened.add(path);
      await page.open(path, { method: 'HEAD' });
      const { body } = await page.open(path);
      const links = [...body.matchAll(/(?:href|action)="\/base([^"]+)"/g)].map(([, link]) =>
        link!.replaceAll('&amp;', '&'),
      );
      for (const link of links) await scan(link);
    };
    const before = await page.participations.getParticipation({
      ...owner,
      participationReference: booking.reference,
    });
    await scan(booking.path);
    expect([...opened].some((path) => path.includes('/move/confirm'))).toBe(true);
    expect(await page.participations.getParticipation({ ...owner, participationReference: booking.reference })).toEqual(
      before,
    );
  });
});

describe('a form', () => {
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://book.example' },
    { 'sec-fetch-site': 'cross-site' },
    { origin, 'sec-fetch-site': 'cross-site' },
  ];

  it.each(foreign)('of another site changes nothing: %o', async (headers) => {
    const { status, heading, body } = await page.open(`${booking.path}/cancel`, { form: {}, headers });
    expect([status, heading]).toEqual([403, 'Nothing was changed']);
    expect(await accessibilityFindings(body)).toEqual([]);
    expect(await stateOf(booking)).toBe('BOOKED');
  });

  it.each([
    { what: 'JSON', headers: { 'content-type': 'application/json' }, body: '{}', status: 415 },
    { what: 'plain text', headers: { 'content-type': 'text/plain' }, body: 'message=x', status: 415 },
    {
      what: 'a multipart form',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: '--x--',
      status: 415,
    },
    { what: 'nothing', headers: undefined, body: undefined, status: 415 },
    {
      what: 'too much',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `message=${'a'.repeat(16_400)}`,
      status: 413,
    },
  ])('that is $what changes nothing', async ({ headers, body, status }) => {
    const answer = await page.open(`${booking.path}/cancel`, { method: 'POST', headers, body });
    expect([answer.status, answer.heading]).toEqual([status, 'Nothing was changed']);
    expect(await stateOf(booking)).toBe('BOOKED');
  });

  it('of our own page does', async () => {
    const headers = { origin, 'sec-fetch-site': 'same-origin' };
    expect((await page.open(`${booking.path}/cancel`, { form: {}, headers })).status).toBe(303);
    expect(await stateOf(booking)).toBe('CANCELED');
  });
});

describe('while a service is down', () => {
  it.each(['calendar', 'identity', 'customer'] as const)('%s: a page says so within 2 s', async (name) => {
    await whilePaused([page.services[name].pid], async () => {
      const { status, heading, headers, body, ms } = await timeTwice(() => page.open(booking.path));
      expect([status, heading]).toEqual([503, 'Temporarily unavailable']);
      expect(ms).toBeLessThan(2_300);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await accessibilityFindings(body)).toEqual([]);
      expect((await page.open(`${booking.path}?lang=de`)).heading).toBe('Zurzeit nicht verfügbar');
    });
  });
});

it('answers what is no HTTP request', async () => {
  const { headers } = await page.open('/booking/unknown');
  for (const [request, status] of [
    ['nonsense\r\n\r\n', '400 Bad Request'],
    [`GET / HTTP/1.1\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, '431 Request Header Fields Too Large'],
  ] as const) {
    const socket = connect(page.port, '127.0.0.1');
    socket.end(request);
    const response = await text(socket);
    expect(response.startsWith(`HTTP/1.1 ${status}\r\n`)).toBe(true);
    for (const name of ['cache-control', 'content-security-policy', 'x-content-type-options', 'x-robots-tag'])
      expect(response).toContain(`\r\n${name}: ${headers.get(name)}\r\n`);
  }
});
