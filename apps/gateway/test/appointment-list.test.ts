import { eventually } from '@scheduling/testing';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

const total = 3_000;
/** All appointments of a series are created within the 2 s of one request. */
const perSeries = 200;
const provider = '/crms/one/provider/p';

const stack = new AsyncDisposableStack();
let gateway: GatewayWithKeys<'calendar'>;

beforeAll(async () => {
  gateway = stack.use(await startGatewayWithKeys('calendar', 'customer'));
  await post('/crms/one/user', { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' });
  await post('/crms/one/account', { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' });
  await post('/crms/one/provider', { reference: 'p', ownerReference: 'u@x', accountReference: 'a@x', name: 'N', timeZone: 'UTC' });
  for (let number = 1; number <= total / perSeries; number += 1) {
    const day = `2030-01-${String(number).padStart(2, '0')}`;
    await post(`${provider}/appointments`, {
      series_data: { from: `${day}T00:00`, to: `${day}T03:20`, raster: 1 },
      resourceReference: 'r',
      productReference: 'x',
      // Enough appointments that a list does not fit in the buffers between calendar and client.
      description: 'd'.repeat(1_000),
    });
  }
}, 180_000);
afterAll(() => stack.disposeAsync());

async function post(path: string, body: unknown): Promise<void> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'x-service-client-id': gateway.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status, await response.text()).toBe(201);
}

function list(query = ''): Promise<Response> {
  return fetch(`${gateway.url}${provider}/appointments${query}`, { headers: { 'x-service-client-id': gateway.key } });
}

async function openList(): Promise<IncomingMessage> {
  const request = get(`${gateway.url}${provider}/appointments`, { agent: false, headers: { 'x-service-client-id': gateway.key } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

interface Listed {
  reference: string;
  start: string;
}

describe('the list of appointments', () => {
  it('is complete, in order, and the same in pages', async () => {
    const response = await list();
    expect([response.status, response.headers.get('content-type'), response.headers.get('link')]).toEqual([
      200,
      'application/json; charset=utf-8',
      null,
    ]);
    const all = (await response.json()) as Listed[];
    expect(all).toHaveLength(total);
    expect(all.map(({ start }) => start)).toEqual(all.map(({ start }) => start).toSorted());

    const paged: Listed[] = [];
    let query: string | undefined = '?limit=700';
    while (query !== undefined) {
      const page: Response = await list(query);
      paged.push(...((await page.json()) as Listed[]));
      const link = /^<https:\/\/scheduling\.test(?<path>[^?]+)(?<query>\?[^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '');
      if (link) expect(link.groups!['path']).toBe(`${provider}/appointments`);
      query = link?.groups!['query'];
    }
    expect(paged).toEqual(all);
  });

  it('has a next page at the public address, also for a request that names the whole URL', async () => {
    const options = { host: '127.0.0.1', port: gateway.port, path: `http://proxied.test:8080${provider}/appointments?limit=1`, headers: { 'x-service-client-id': gateway.key } };
    const [response] = (await once(get(options), 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(response.headers.link).toMatch(/^<https:\/\/scheduling\.test\/crms\/one\/provider\/p\/appointments\?limit=1&cursor=[^>]+>; rel="next"$/);
    response.resume();
  });

  it('is an empty array if nothing is found, and a problem if the provider does not exist', async () => {
    expect(await (await list('?productRef=other')).text()).toBe('[]');
    const response = await fetch(`${gateway.url}/crms/one/provider/absent/appointments`, { headers: { 'x-service-client-id': gateway.key } });
    expect(await response.json()).toMatchObject({ status: 404, code: 'provider.not_found' });
  });

  it('blocks no other request while its readers are slow', async () => {
    const readers = await Promise.all(Array.from({ length: 10 }, openList));
    for (const reader of readers) reader.pause();
    // Paused readers would hold it up forever.
    await eventually(async () => expect((await list('?limit=1')).status).toBe(200));
    for (const reader of readers) reader.destroy();
  });

  it('ends in a broken response if the calendar dies during it, and in 503 afterwards', async () => {
    const reader = await openList();
    reader.pause();
    process.kill(gateway.services.calendar.pid, 'SIGKILL');
    const failure = once(reader, 'error');
    reader.resume();
    const [error] = (await failure) as [Error];
    expect(error.message).toBe('aborted');
    await eventually(async () => expect((await list()).status).toBe(503));
  });
});
