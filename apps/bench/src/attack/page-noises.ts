import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Noise, Send, Target } from './noise.ts';

/** What strangers, scanners of mail providers, and persons with a link can do to the pages. */
export const pageNoises: Noise[] = [
  {
    name: 'guessed links from one address',
    clients: 50,
    act: ({ link }, send) => open(send, guess(link), '198.51.100.1'),
    disturbs: 'page',
  },
  {
    name: 'guessed links from many addresses',
    clients: 32,
    act: ({ link }, send) => open(send, guess(link), someAddress()),
    disturbs: 'page',
  },
  { name: 'scanners that open every page of a link', clients: 32, act: scan, disturbs: 'page' },
  {
    name: 'the times of a booking from one address',
    clients: 50,
    act: ({ link }, send) => open(send, `${link}/move`, '198.51.100.2'),
    disturbs: 'page',
  },
  {
    name: 'the times of a booking from many addresses',
    clients: 32,
    act: ({ link }, send) => open(send, `${link}/move`, someAddress()),
    disturbs: 'page',
  },
  {
    name: 'weeks of a booking page from one address',
    clients: 50,
    act: ({ bookingPage }, send) => open(send, bookingPage, '198.51.100.3'),
    disturbs: 'booking page',
  },
  {
    name: 'weeks of a booking page from many addresses',
    clients: 32,
    act: ({ bookingPage }, send) => open(send, bookingPage, someAddress()),
    disturbs: 'api',
  },
  { name: 'holds on a booking page from many addresses', clients: 32, act: hold, disturbs: 'booking page' },
  { name: 'mail bombs through a booking page', clients: 32, act: bomb, disturbs: 'booking page' },
];

/** Chooses one of the times of the next weeks, on a quarter of an hour, and leaves. */
function hold({ bookingPage }: Target, send: Send): Promise<number> {
  return post(send, `${bookingPage}/hold`, { offer: 'page', slot: someStart() });
}

/** Sends the form of a choice that nobody made, for one of a few addresses. */
function bomb({ bookingPage, resource }: Target, send: Send): Promise<number> {
  const query = new URLSearchParams({ offer: 'page', at: resource, slot: someStart() });
  const email = `victim-${randomInt(100)}@customers.example`;
  return post(send, `${bookingPage}/form/${randomUUID()}?${query.toString()}`, { name: 'Victim', email });
}

/** As the page writes it. */
function someStart(): string {
  const start = Temporal.Now.instant().round({ smallestUnit: 'hour' });
  const { epochMilliseconds } = start.add({ hours: 48 + randomInt(24 * 20), minutes: 5 * randomInt(12) });
  return new Date(epochMilliseconds).toISOString();
}

function post(send: Send, url: string, form: Record<string, string>): Promise<number> {
  const type = 'application/x-www-form-urlencoded';
  const body = new URLSearchParams(form).toString();
  return send('POST', url, body, { 'content-type': type, 'x-forwarded-for': someAddress() });
}

const pages = ['', '/move', '/cancel', '/attend', '/calendar.ics'];
let opened = 0;

/** One page after the other, each from another address. */
function scan({ link }: Target, send: Send): Promise<number> {
  return open(send, `${link}${pages[opened++ % pages.length]}`, someAddress());
}

/** The same booking with another MAC: nothing rejects it before its row has been read. */
function guess(link: string): string {
  const at = link.lastIndexOf('/') + 1;
  const token = Buffer.from(link.slice(at), 'base64url');
  // The ids of the key and of the booking come before it: see link-token.ts.
  randomBytes(16).copy(token, 2 + token[1]! + 16);
  return link.slice(0, at) + token.toString('base64url');
}

function open(send: Send, url: string, address: string): Promise<number> {
  return send('GET', url, undefined, { 'x-forwarded-for': address });
}

/** One of many networks. */
function someAddress(): string {
  return `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;
}
