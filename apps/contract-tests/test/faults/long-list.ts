import { readFile } from 'node:fs/promises';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, nextQuery } from '@scheduling/test-stack/client';
import { createAppointment, createCrm, createPractice, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { expectLittleGrowth, heldMemory, waitUntilListsRest } from './held-memory.ts';
import { stackForFaults } from './stack-with-faults.ts';

/** As objects, or as text, they take more than a process may grow by. */
const many = 60_000;
const few = 1_000;

let stack: TestStack;
let crm: TestCrm;
/** Providers with many and with few appointments. */
let large: Practice;
let small: Practice;
/** The long list, and how long it took. */
let listed: Answer<{ start: string; reference: string }[]>;

beforeAll(async () => {
  stack = await stackForFaults();
  crm = await createCrm({}, stack.info);
  [large, small] = [await createPractice(crm), await createPractice(crm)];
  await fill(large, many);
  await fill(small, few);
  listed = await crm.get(`${large.at}/appointments`);
}, 240_000);

/** Copies one appointment, one per minute, until there are `count` of them. */
async function fill(practice: Practice, count: number): Promise<void> {
  const reference = await createAppointment(practice, { start: '2031-01-01T00:00', end: '2031-01-01T00:30' });
  await query(
    'calendar',
    `INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
     SELECT crm_id, provider_id, reference || number, resource_reference, product_reference, description,
            starts_at + number * interval '1 minute', ends_at + number * interval '1 minute', capacity, taken, accept_bookings, content_digest
       FROM appointment, generate_series(1, $3::int - 1) AS number
      WHERE crm_id = $1 AND reference = $2`,
    [crm.crmId, reference, count],
    stack.info,
  );
  await query('calendar', 'ANALYZE appointment', [], stack.info);
}

describe(`the list of a provider with ${many} appointments`, { timeout: 120_000 }, () => {
  it('is complete and in order', () => {
    expect(listed.body).toHaveLength(many);
    expect(new Set(listed.body.map(({ reference }) => reference)).size).toBe(many);
    const starts = listed.body.map(({ start }) => start);
    expect(starts.every((start, index) => index === 0 || starts[index - 1]! < start)).toBe(true);
  });

  it('is not held in memory by the gateway or by calendar while a client pauses at the beginning, and in the middle', async () => {
    await waitUntilListsRest(stack);
    const before = await heldMemory(stack);
    const read = startCounting(await open(large));
    for (const share of [0, 0.5]) {
      await read(share * many);
      await waitUntilListsRest(stack);
      // What is left of the list in the middle takes about 30 MB as objects; all of it takes 27 MB as text.
      expectLittleGrowth(before, await heldMemory(stack));
    }
    expect(await read()).toBe(many);
  });

  it('is abandoned when the client disconnects after the first chunk', async () => {
    // A list has its own connection to calendar. An end of its queries alone proves nothing: without a reader they
    // would stop, too.
    await waitUntilListsRest(stack);
    const idle = await calendarConnections();
    const response = await open(large);
    const request = (response as IncomingMessage & { req: ClientRequest }).req;
    await new Promise((resolve) => response.once('data', resolve));
    expect(await calendarConnections()).toBeGreaterThan(idle);
    request.destroy();
    const leftAt = performance.now();
    await waitUntil(async () => (await calendarConnections()) <= idle, {
      what: 'the connection of the list to be closed',
      timeoutMs: 20_000,
    });
    const lastQueryMs = await waitUntilListsRest(stack);
    // Reading all of it would have taken as long as before.
    expect(lastQueryMs - leftAt).toBeLessThan(listed.durationMs / 3);
    expect(await startCounting(await open(small))()).toBe(few);
  });

  it('comes in pages with the same appointments in the same order', async () => {
    const whole = (await crm.get<{ reference: string }[]>(`${small.at}/appointments`)).body.map(
      ({ reference }) => reference,
    );
    for (const limit of [333, 1_000]) {
      const pages: string[][] = [];
      for (let next: Record<string, string> | undefined = { limit: String(limit) }; next !== undefined;) {
        const answer: Answer<{ reference: string }[]> = await crm.get(`${small.at}/appointments`, { query: next });
        pages.push(answer.body.map(({ reference }) => reference));
        next = nextQuery(answer);
      }
      expect(pages.map(({ length }) => length)).toEqual(limit === 333 ? [333, 333, 333, 1] : [1_000]);
      expect(pages.flat()).toEqual(whole);
    }
    const filter = { limit: '10', resourceRef: small.resource, from: '2031-01-01T01:00', to: '2031-01-01T02:00' };
    const first = await crm.get<unknown[]>(`${small.at}/appointments`, { query: filter });
    expect(nextQuery(first)).toMatchObject(filter);
  });

  it('returns its first and its last page equally fast', async () => {
    const read = (query: Record<string, string>) =>
      crm.get<unknown[]>(`${large.at}/appointments`, { query: { limit: '500', ...query } });
    const times = { first: [] as number[], last: [] as number[] };
    // Alternately, and the fastest counts: other work on the machine makes any one of them slow.
    for (let round = 0; round < 5; round += 1) {
      const [first, last] = [await read({}), await read({ from: '2031-02-11T00:00' })];
      expect([first.body.length, last.body.length]).toEqual([500, 500]);
      times.first.push(first.durationMs);
      times.last.push(last.durationMs);
    }
    expect(Math.min(...times.last)).toBeLessThan(3 * Math.min(...times.first));
  });
});

function open({ at }: Practice): Promise<IncomingMessage> {
  const url = `${stack.info.gateway}/crms/${crm.crmId}${at}/appointments`;
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'x-service-client-id': crm.key }, agent: false }, resolve).on('error', reject);
  });
}

/**
 * The function that it returns reads on, until it has counted at least so many appointments, and returns how many it
 * has counted so far.
 */
function startCounting(response: IncomingMessage): (limit?: number) => Promise<number> {
  expect(response.statusCode).toBe(200);
  const chunks: AsyncIterator<Buffer, undefined> = response[Symbol.asyncIterator]();
  let count = 0;
  let rest = '';
  return async (limit = Infinity) => {
    while (count < limit) {
      const { value, done } = await chunks.next();
      if (done) {
        expect(rest.endsWith(']')).toBe(true);
        break;
      }
      const parts = (rest + String(value)).split('"seriesId":');
      count += parts.length - 1;
      rest = parts.at(-1)!.slice(-20);
    }
    return count;
  };
}

/** Established connections to calendar's gRPC port; in /proc, 01 is that state and numbers are hexadecimal. */
async function calendarConnections(): Promise<number> {
  const port = Number(stack.info.services.calendar.split(':').at(-1)).toString(16).toUpperCase().padStart(4, '0');
  const lines = (await Promise.all(['tcp', 'tcp6'].map((table) => readFile(`/proc/net/${table}`, 'utf8'))))
    .join('')
    .split('\n');
  return lines.filter((line) => new RegExp(`^\\s*\\d+: [\\dA-F]+:${port} [\\dA-F]+:[\\dA-F]{4} 01 `).test(line)).length;
}
