import { eventually } from '@scheduling/testing';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

const timeslotCount = 12;
const appointmentCount = 600;
/** All appointments of a series are created within the 2 s of one request. */
const perSeries = 200;
const provider = '/crms/one/provider/p';
const period = 'from=2030-01-01T00:00&to=2030-01-02T00:00';

const stack = new AsyncDisposableStack();
let gateway: GatewayWithKeys<'calendar'>;

const newTimeslots = Array.from({ length: timeslotCount }, (_, index) => ({
  reference: `t-${String(index).padStart(2, '0')}`,
  resourceReference: 'r',
  start: '2030-01-01T00:00',
  end: '2030-01-01T23:00',
  raster: 1,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  address: 'Straße "1" 🏠\n',
  state: 'BOOKABLE',
}));

/** Each of the timeslots contains each of the appointments. */
beforeAll(async () => {
  gateway = stack.use(await startGatewayWithKeys('calendar', 'customer'));
  await post('/crms/one/user', { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' });
  await post('/crms/one/account', { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' });
  await post('/crms/one/provider', { reference: 'p', ownerReference: 'u@x', accountReference: 'a@x', name: 'N', timeZone: 'UTC' });
  for (let first = 0; first < appointmentCount; first += perSeries) {
    const timeOf = (minute: number): string => new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString().slice(0, 16);
    await post(`${provider}/appointments`, {
      series_data: { from: timeOf(first), to: timeOf(first + perSeries), raster: 1 },
      resourceReference: 'r',
      productReference: 'x',
      description: `"ü"${'d'.repeat(1_000)}`,
    });
  }
  await post(`${provider}/timeslots`, { timeslots: newTimeslots });
}, 180_000);
afterAll(() => stack.disposeAsync());

async function post(path: string, body: unknown, expected = 201): Promise<Response> {
  const response = await send('POST', path, body);
  expect(response.status, response.ok ? '' : await response.text()).toBe(expected);
  return response;
}

function send(method: string, path: string, body: unknown): Promise<Response> {
  return fetch(gateway.url + path, {
    method,
    headers: { 'x-service-client-id': gateway.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function list(query = '', resource = 'r'): Promise<Response> {
  return fetch(`${gateway.url}${provider}/resource/${resource}/timeslots?${period}${query}`, { headers: { 'x-service-client-id': gateway.key } });
}

interface Listed {
  reference: string;
  defaultCapacity: number;
  appointments: { reference: string; start: string }[];
}

function expectComplete(timeslots: Listed[]): void {
  for (const { appointments } of timeslots) {
    expect(new Set(appointments.map(({ reference }) => reference)).size).toBe(appointmentCount);
    expect(appointments.map(({ start }) => start)).toEqual(appointments.map(({ start }) => start).toSorted());
  }
}

/** The serializer leaves out no property and changes no order. */
async function parse<Answer>(response: Response): Promise<Answer> {
  const text = await response.text();
  expect(response.ok, text.slice(0, 1_000)).toBe(true);
  const answer = JSON.parse(text) as Answer;
  expect(JSON.stringify(answer) === text).toBe(true);
  return answer;
}

const orderOfFields = ['reference', 'resourceReference', 'start', 'end', 'raster', 'defaultCapacity', 'defaultAcceptBookings', 'address', 'state', 'appointments'];

describe('the timeslots of a resource', () => {
  it('are complete, in order, and the same in pages', async () => {
    const response = await list();
    expect([response.status, response.headers.get('content-type'), response.headers.get('link')]).toEqual([200, 'application/json; charset=utf-8', null]);
    const all = await parse<Listed[]>(response);
    expect(all.map(({ reference }) => reference)).toEqual(newTimeslots.map(({ reference }) => reference));
    expectComplete(all);
    expect(all.map(Object.keys)).toEqual(all.map(() => orderOfFields));

    const paged: Listed[] = [];
    for (let query: string | undefined = '&limit=5'; query !== undefined; ) {
      const page: Response = await list(query);
      paged.push(...(await parse<Listed[]>(page)));
      const link = page.headers.get('link');
      query = link === null ? undefined : `&${/^<https:\/\/scheduling\.test[^?]+\?(?<query>[^>]+)>; rel="next"$/.exec(link)!.groups!['query']!.replace(/^from=[^&]+&to=[^&]+&/, '')}`;
    }
    expect(paged).toEqual(all);
  });

  it('are returned completely by the operations that return them', async () => {
    const reversed = newTimeslots.toReversed();
    const created = await parse<Listed[]>(await post(`${provider}/timeslots`, { timeslots: reversed }, 200));
    expect(created.map(({ reference }) => reference)).toEqual(reversed.map(({ reference }) => reference));
    expectComplete(created);
    const updated = await send('PUT', `${provider}/timeslots/t-00`, { defaultCapacity: 5 });
    expect(updated.status).toBe(200);
    const { timeslot, ...rest } = await parse<{ timeslot: Listed }>(updated);
    expect(rest).toEqual({ 'api-info': { version: '1' } });
    expect(timeslot).toMatchObject({ reference: 't-00', defaultCapacity: 5 });
    expectComplete([timeslot]);
    expect(timeslot.appointments).toEqual(created[0]!.appointments);
  });

  it('are an empty array if there are none, and a problem if the provider does not exist', async () => {
    expect(await (await list('', 'other')).text()).toBe('[]');
    const response = await fetch(`${gateway.url}/crms/one/provider/absent/resource/r/timeslots?${period}`, { headers: { 'x-service-client-id': gateway.key } });
    expect(await response.json()).toMatchObject({ status: 404, code: 'provider.not_found' });
  });

  it('block no other request while their readers are slow', async () => {
    const readers = await Promise.all(Array.from({ length: 5 }, openList));
    for (const reader of readers) reader.pause();
    await eventually(async () => expect((await list('', 'other')).status).toBe(200));
    for (const reader of readers) reader.destroy();
  });

  it('end in a broken response if the calendar dies during it, and in 503 afterwards', async () => {
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

async function openList(): Promise<IncomingMessage> {
  const path = `${provider}/resource/r/timeslots?${period}`;
  const [response] = (await once(get(gateway.url + path, { agent: false, headers: { 'x-service-client-id': gateway.key } }), 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  return response;
}
