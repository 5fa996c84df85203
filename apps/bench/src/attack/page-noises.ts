import { randomBytes, randomInt } from 'node:crypto';
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
];

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
