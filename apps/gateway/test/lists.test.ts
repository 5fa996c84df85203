import { eventually } from '@scheduling/testing';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

const total = 3_000;
/** All appointments of a series are created within the 2 s of one request. */
const perDay = 200;
const provider = '/crms/one/provider/p';
const appointments = `${provider}/appointments`;
const timeslots = `${provider}/resource/r/timeslots?from=2030-01-01T00:00&to=2030-01-02T00:00`;

/** Each contains all appointments of three days. */
const newTimeslots = Array.from({ length: 12 }, (_, index) => ({
  reference: `t-${String(index).padStart(2, '0')}`,
  resourceReference: 'r',
  start: '2030-01-01T00:00',
  end: '2030-01-04T00:00',
  raster: 1,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  address: 'Straße "1" 🏠\n',
  state: 'BOOKABLE',
}));
const perTimeslot = 3 * perDay;

let gateway: GatewayWithKeys<'calendar'>;

/** The lists are longer than the buffers between calendar and a client. */
beforeAll(async () => {
  gateway = await startGatewayWithKeys('calendar', 'customer');
  await post('/crms/one/user', { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' });
  await post('/crms/one/account', { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' });
  await post('/crms/one/provider', {
    reference: 'p',
    ownerReference: 'u@x',
    accountReference: 'a@x',
    name: 'N',
    timeZone: 'UTC',
  });
  for (let number = 1; number <= total / perDay; number += 1) {
    const day = `2030-01-${String(number).padStart(2, '0')}`;
    await post(appointments, {
      series_data: { from: `${day}T00:00`, to: `${day}T03:20`, raster: 1 },
      resourceReference: 'r',
      productReference: 'x',
      description: `"ü"${'d'.repeat(1_000)}`,
    });
  }
  await post(`${provider}/timeslots`, { timeslots: newTimeslots });
}, 180_000);
afterAll(() => gateway[Symbol.asyncDispose]());

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

function list(path: string): Promise<Response> {
  return fetch(gateway.url + path, { headers: { 'x-service-client-id': gateway.key } });
}

/** One page after the other. */
async function listPages<Item>(firstPage: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | undefined = firstPage; next !== undefined;) {
    const page: Response = await list(next);
    items.push(...(await parse<Item[]>(page)));
    next = /^<https:\/\/scheduling\.test(?<path>[^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.groups![
      'path'
    ];
  }
  return items;
}

/** The text is as JSON.stringify writes it. */
async function parse<Answer>(response: Response): Promise<Answer> {
  const text = await response.text();
  expect(response.ok, text.slice(0, 1_000)).toBe(true);
  const answer = JSON.parse(text) as Answer;
  expect(JSON.stringify(answer) === text).toBe(true);
  return answer;
}

interface Listed {
  reference: string;
  start: string;
}

interface ListedTimeslot extends Listed {
  defaultCapacity: number;
  appointments: Listed[];
}

/** vitest takes seconds to describe how so much differs. */
function expectSame(one: Listed[], other: Listed[]): void {
  expect(JSON.stringify(one) === JSON.stringify(other)).toBe(true);
}

function expectComplete(listed: ListedTimeslot[]): void {
  for (const each of listed) {
    expect(new Set(each.appointments.map(({ reference }) => reference)).size).toBe(perTimeslot);
    expect(each.appointments.map(({ start }) => start)).toEqual(each.appointments.map(({ start }) => start).toSorted());
  }
}

/** One of a customer with messages, one of a customer without an address for mails, and a reservation. */
async function createParticipations(appointmentReference: string): Promise<unknown[]> {
  await post(`${provider}/customers`, {
    customerReference: 'reachable',
    providerReference: 'p',
    userName: 'Ä',
    email: 'c@x.example',
    mobile: '1',
  });
  await post(`${provider}/customers`, { customerReference: 'unreachable', providerReference: 'p', userName: 'B' });
  const create = async (reference: string, customerReference: string, state: string, message?: string) => {
    const booking = { reference, appointmentReference, customerReference, state, message };
    return (await parse<{ participation: unknown }>(await post(`${provider}/participations?sendMails=false`, booking)))
      .participation;
  };
  await create('moved', 'reachable', 'REQUESTED', 'first "message"');
  const reserved = await create('reserved', 'unreachable', 'RESERVED');
  const last = await create('last', 'unreachable', 'BOOKED');
  const change = { state: 'BOOKED', message: 'second' };
  const { participation: moved } = await parse<{ participation: unknown }>(
    await send('POST', `${provider}/participations/moved?sendMails=false`, change),
  );
  expect(moved).toMatchObject({ messages: ['first "message"', 'second'] });
  expect(reserved).toHaveProperty('expiresAt');
  return [moved, reserved, last];
}

const complete = [200, 'application/json; charset=utf-8', null];
const headOf = ({ status, headers }: Response) => [status, headers.get('content-type'), headers.get('link')];

describe('the list of appointments', () => {
  it('is complete, in order, and the same in pages', async () => {
    const response = await list(appointments);
    expect(headOf(response)).toEqual(complete);
    const all = await parse<Listed[]>(response);
    expect(all).toHaveLength(total);
    expect(all.map(({ start }) => start)).toEqual(all.map(({ start }) => start).toSorted());
    expectSame(await listPages(`${appointments}?limit=700`), all);
  });

  it('contains what the creation of each appointment and participation was answered with, character by character', async () => {
    const times = {
      start: '2031-01-01T10:00',
      end: '2031-01-01T11:00',
      resourceReference: 'r',
      productReference: 'shown',
      capacity: 9,
      acceptBookings: true,
    };
    const line = 'ü "quoted" \\ / 🏠';
    const text = `${line}\n\t`;
    const details = [
      {
        address: { city: 'Bern', countryCode: 'CH', street: line, number: '1', zip: '3000' },
        price: { value: 49.9, currency: 'CHF' },
        description: text,
      },
      {
        address: { city: 'Bern' },
        price: { value: 0, currency: 'EUR' },
        contactReference: 'u@x',
        notes: text,
        acceptBookings: false,
      },
      { address: text, price: { value: 1_200, currency: 'EUR' } },
      {
        participations: [
          { name: line, email: 'a@x.example', mobile: '+49 170 1234567', note: text, state: 'BOOKED' },
          { name: 'B', email: 'b@x.example', state: 'REQUESTED' },
        ].map((each) => ({ reference: `embedded-${each.name.length}`, ...each })),
      },
    ];
    const created = [];
    for (const [index, each] of details.entries()) {
      const { appointment } = await parse<{ appointment: Listed }>(
        await post(appointments, { reference: `shown-${index}`, ...times, ...each }),
      );
      created.push(appointment);
    }
    const participations = await createParticipations('shown-2');
    const expected = created.map((each) => (each.reference === 'shown-2' ? { ...each, participations } : each));
    for (const page of ['', '&limit=100']) {
      expect(await (await list(`${appointments}?productRef=shown${page}`)).text()).toBe(JSON.stringify(expected));
    }
  });

  it('has a next page at the public address, also for a request that names the whole URL', async () => {
    const options = {
      host: '127.0.0.1',
      port: gateway.port,
      path: `http://proxied.test:8080${appointments}?limit=1`,
      headers: { 'x-service-client-id': gateway.key },
    };
    const [response] = (await once(get(options), 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(response.headers.link).toMatch(
      /^<https:\/\/scheduling\.test\/crms\/one\/provider\/p\/appointments\?limit=1&cursor=[^>]+>; rel="next"$/,
    );
    response.resume();
  });

  it('is an empty array if nothing is found', async () => {
    expect(await (await list(`${appointments}?productRef=other`)).text()).toBe('[]');
  });
});

describe('the timeslots of a resource', () => {
  it('are complete, in order, and the same in pages', async () => {
    const response = await list(timeslots);
    expect(headOf(response)).toEqual(complete);
    const all = await parse<ListedTimeslot[]>(response);
    expect(all.map(({ reference }) => reference)).toEqual(newTimeslots.map(({ reference }) => reference));
    expectComplete(all);
    const orderOfFields = [
      'reference',
      'resourceReference',
      'start',
      'end',
      'raster',
      'defaultCapacity',
      'defaultAcceptBookings',
      'address',
      'bufferBefore',
      'bufferAfter',
      'state',
      'fromHours',
      'appointments',
    ];
    expect(all.map(Object.keys)).toEqual(all.map(() => orderOfFields));
    expectSame(await listPages(`${timeslots}&limit=5`), all);
  });

  it('are returned completely by the operations that return them', async () => {
    const reversed = newTimeslots.toReversed();
    const created = await parse<ListedTimeslot[]>(await post(`${provider}/timeslots`, { timeslots: reversed }, 200));
    expect(created.map(({ reference }) => reference)).toEqual(reversed.map(({ reference }) => reference));
    expectComplete(created);

    const { timeslot, ...rest } = await parse<{ timeslot: ListedTimeslot }>(
      await send('PUT', `${provider}/timeslots/t-05`, { defaultCapacity: 2 }),
    );
    expect(rest).toEqual({ 'api-info': { version: '1' } });
    expect(timeslot).toMatchObject({ reference: 't-05', defaultCapacity: 2 });
    expectComplete([timeslot]);
    expectSame(timeslot.appointments, created[0]!.appointments);
  });

  it('are an empty array if there are none', async () => {
    expect(await (await list(timeslots.replace('/r/', '/other/'))).text()).toBe('[]');
  });
});

describe.each([appointments, timeslots])('%s', (path) => {
  it('is a problem if the provider does not exist', async () => {
    expect(await (await list(path.replace('/p/', '/absent/'))).json()).toMatchObject({
      status: 404,
      code: 'provider.not_found',
    });
  });

  it('blocks no other request while its readers are slow', async () => {
    const readers = await Promise.all(Array.from({ length: 5 }, () => openPausedList(path)));
    // Paused readers would hold it up forever.
    await eventually(async () => expect((await list(`${appointments}?limit=1`)).status).toBe(200));
    for (const reader of readers) reader.destroy();
  });
});

it('lists end in a broken response if the calendar dies during them, and in 503 afterwards', async () => {
  const readers = await Promise.all([appointments, timeslots].map(openPausedList));
  const failures = readers.map((reader) => once(reader, 'error') as Promise<[Error]>);
  process.kill(gateway.services.calendar.pid, 'SIGKILL');
  for (const reader of readers) reader.resume();
  for (const [error] of await Promise.all(failures)) expect(error.message).toBe('aborted');
  for (const path of [appointments, timeslots])
    await eventually(async () => expect((await list(path)).status).toBe(503));
});

async function openPausedList(path: string): Promise<IncomingMessage> {
  for (;;) {
    const [response] = (await once(
      get(gateway.url + path, { agent: false, headers: { 'x-service-client-id': gateway.key } }),
      'response',
    )) as [IncomingMessage];
    if (response.statusCode === 200) return response.pause();
    // Several lists at once may be more than a busy machine begins in time.
    expect(response.statusCode).toBe(503);
    response.resume();
    await once(response, 'end');
  }
}
