import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../src/create-client.ts';
import { parseRetryAfter } from '../src/retry-after.ts';

let server: Server;
let answer: (response: ServerResponse) => void;
/** When each request arrived, in milliseconds. */
let arrivals: number[];

beforeAll(async () => {
  server = createServer((_request, response) => {
    arrivals.push(Date.now());
    answer(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
beforeEach(() => {
  arrivals = [];
});
afterAll(() => server.close());

const client = (retryForMs: number): Client =>
  createClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    crmId: 'one',
    key: 'k',
    retryForMs,
  });

const unavailable = (retryAfter: string) => (response: ServerResponse) =>
  response.writeHead(503, { 'retry-after': retryAfter }).end();

describe('the client', () => {
  it.each(['Tue, 01 Dec 2020 12:00:00 GMT', 'Tue, 41 Dec 2020 12:00:00 GMT', 'soon', '-1', 'NaN', '', '0'])(
    'waits as usual after Retry-After: %s',
    async (retryAfter) => {
      answer = unavailable(retryAfter);
      await expect(client(400).GET('/webhooks')).rejects.toMatchObject({ status: 503 });
      // The first wait is at least 150 ms, and the second one 300.
      expect(arrivals.length).toBeLessThan(3);
    },
  );

  it('waits until the date in Retry-After', async () => {
    const untilMs = 1_000 * Math.ceil(Date.now() / 1_000 + 1);
    answer = (response) =>
      arrivals.length === 1
        ? unavailable(new Date(untilMs).toUTCString())(response)
        : response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
    expect((await client(10_000).GET('/webhooks')).data).toEqual([]);
    expect(arrivals).toHaveLength(2);
    // A timer may be a millisecond early.
    expect(arrivals[1]).toBeGreaterThanOrEqual(untilMs - 1);
  });

  it('gives up at once if the date in Retry-After is too late', async () => {
    answer = unavailable(new Date(Date.now() + 3_600_000).toUTCString());
    await expect(client(15_000).GET('/webhooks')).rejects.toMatchObject({ status: 503 });
    expect(arrivals).toHaveLength(1);
  });
});

it.each([
  [null, 0],
  ['0', 0],
  ['120', 120_000],
  ['86401', 86_400_000],
  ['9'.repeat(400), 86_400_000],
  ['', 0],
  ['-1', 0],
  ['1.5', 0],
  ['0x10', 0],
  ['1e3', 0],
  ['Infinity', 0],
  ['1, 2', 0],
  ['soon', 0],
  ['Tue, 01 Dec 2026 12:00:30 GMT', 30_000],
  ['Tue, 01 Dec 2026 11:59:59 GMT', 0],
  ['Wed, 01 Dec 9999 12:00:00 GMT', 86_400_000],
  ['Tue, 41 Dec 2026 12:00:30 GMT', 0],
  ['2026-12-01T12:00:30Z', 0],
])('Retry-After: %s asks for a wait of %i ms', (value, waitMs) => {
  expect(parseRetryAfter(value, Date.parse('2026-12-01T12:00:00Z'))).toBe(waitMs);
});
