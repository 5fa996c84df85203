import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

let gateway: GatewayWithKeys;

beforeAll(async () => {
  gateway = await startGatewayWithKeys();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const slot = {
  resourceReference: 'r',
  end: '2030-01-01T10:00',
  raster: 30,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  state: 'CREATED',
};
const single = {
  reference: 'a',
  start: '2030-01-01T09:00',
  end: '2030-01-01T10:00',
  resourceReference: 'r',
  productReference: 'p',
};
const span = { from: '2030-01-01T09:00', to: '2030-01-01T10:00', raster: 30 };

/** A body that is valid for every POST that has one. */
const posts = [
  { path: '/crms/one/user', body: { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' } },
  { path: '/crms/one/account', body: { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' } },
  { path: '/crms/one/provider', body: { reference: 'p', ownerReference: 'u@x', accountReference: 'a@x', name: 'N' } },
  { path: '/crms/one/provider/p/staff', body: { email: 'u@x.example', username: 'u', lastName: 'L' } },
  { path: '/crms/one/provider/p/timeslots', body: { timeslots: [slot] } },
  { path: '/crms/one/provider/p/appointments', body: single },
  {
    path: '/crms/one/provider/p/appointments',
    body: { resourceReference: 'r', productReference: 'p', series_data: span },
  },
  {
    path: '/crms/one/provider/p/participations',
    body: { reference: 'b', appointmentReference: 'a', customerReference: 'c', state: 'BOOKED' },
  },
  { path: '/crms/one/provider/p/participations/b', body: { state: 'BOOKED' } },
  { path: '/crms/one/provider/p/customers', body: { customerReference: 'c', providerReference: 'p', userName: 'N' } },
];

describe('a request', () => {
  it('gets all invalid fields reported at once', async () => {
    const timeslots = Array.from({ length: 500 }, () => ({ ...slot, end: 'x', raster: 0 }));
    const { problem } = await gateway.send('POST', '/crms/one/provider/p/timeslots', { timeslots });
    expect(problem.errors).toHaveLength(1_000);
    expect(problem.errors).toContainEqual({ pointer: '/timeslots/499/raster', detail: 'must be at least 1' });
  });

  it('gets at most 10,000 invalid fields reported', async () => {
    const windows = Array.from({ length: 50 }, () => ({}));
    const exceptions = Array.from({ length: 400 }, () => ({ windows }));
    const { problem } = await gateway.send('PUT', '/crms/one/provider/p/resource/r/hours', { weekly: [], exceptions });
    expect([problem.code, problem.errors!.length]).toEqual(['request.invalid', 10_000]);
  });

  it.each([
    {
      name: 'timeslots',
      path: '/crms/one/provider/p/timeslots',
      body: { timeslots: Array.from({ length: 501 }, () => 0) },
    },
    {
      name: 'participations',
      path: '/crms/one/provider/p/appointments',
      body: { ...single, participations: Array.from({ length: 501 }, () => 0) },
    },
    {
      name: 'timeslots',
      path: '/crms/one/provider/p/timeslots',
      body: { timeslots: Array.from({ length: 400_000 }, () => 0) },
    },
    {
      name: 'series_data/weekdays',
      max: 7,
      path: '/crms/one/provider/p/appointments',
      body: { series_data: { weekdays: Array.from({ length: 200_000 }, () => 0) } },
    },
  ])('with too many $name is rejected for that alone', async ({ name, max = 500, path, body }) => {
    const { status, problem } = await gateway.send('POST', path, body);
    expect({ status, errors: problem.errors }).toEqual({
      status: 400,
      errors: [{ pointer: `/${name}`, detail: `must not have more than ${max} elements` }],
    });
  });

  it('with no timeslots is rejected', async () => {
    const { problem } = await gateway.send('POST', '/crms/one/provider/p/timeslots', { timeslots: [] });
    expect(problem.errors).toEqual([{ pointer: '/timeslots', detail: 'must not be empty' }]);
  });

  it('may have unknown fields', async () => {
    const { problem } = await gateway.send('POST', '/crms/one/account', {
      ownerReference: 'nobody@x',
      accountReference: 'unheard-of@x',
      branch: 'misc',
      future: { field: 1, list: Array.from({ length: 501 }, () => 0) },
      more: Array.from({ length: 501 }, () => 0),
    });
    expect(problem.code).toBe('account.owner_not_found');
  });

  it.each([
    { query: 'from=2030-01-01&to=x', parameters: ['from', 'to'] },
    { query: '', parameters: ['from', 'to'] },
    { query: 'from=2030-01-01T10:00&to=2030-01-02T10:00&limit=0', parameters: ['limit'] },
    { query: 'from=2030-01-01T10:00&to=2030-01-02T10:00&limit=1.5', parameters: ['limit'] },
    { query: 'from=2030-01-01T10:00&from=2030-01-01T11:00&to=2030-01-02T10:00', parameters: ['from'] },
  ])('with the query "$query" gets its invalid parameters reported', async ({ query, parameters }) => {
    const { status, problem } = await gateway.send('GET', `/crms/one/provider/p/resource/r/timeslots?${query}`);
    expect(status).toBe(400);
    expect(problem.errors!.map((error) => ('parameter' in error ? error.parameter : error))).toEqual(parameters);
  });

  it.each(['1', 'yes', '', 'TRUE'])('with the flag "%s" is rejected', async (flag) => {
    const { problem } = await gateway.send('GET', `/crms/one/provider/p/appointments?includeArchived=${flag}`);
    expect(problem.errors).toEqual([{ parameter: 'includeArchived', detail: 'must be true or false' }]);
  });

  it('gets the expected types reported in the terms of JSON', async () => {
    const { problem } = await gateway.send('POST', '/crms/one/provider/p/appointments', {
      ...single,
      reference: 5,
      productName: 5,
      capacity: 'x',
      acceptBookings: 'x',
      price: 'x',
      participations: {},
      address: 5,
    });
    expect(
      Object.fromEntries(problem.errors!.map((error) => ['pointer' in error ? error.pointer : '', error.detail])),
    ).toEqual({
      '/reference': 'must be a string',
      '/productName': 'must be a string or null',
      '/capacity': 'must be an integer or null',
      '/acceptBookings': 'must be true, false or null',
      '/price': 'must be an object or null',
      '/participations': 'must be an array or null',
      '/address': 'must be an object, a string or null',
    });
  });

  it('to delete is rejected if body and query differ', async () => {
    const { problem } = await gateway.send('DELETE', '/crms/one/provider/p/appointments?appointmentReference=a', {
      appointmentReference: 'b',
    });
    expect(problem.errors).toEqual([
      { pointer: '/appointmentReference', detail: 'has different values in the body and the query' },
    ]);
  });

  it('to delete must say what to delete', async () => {
    for (const [path, body] of [
      ['/crms/one/provider/p/appointments', undefined],
      ['/crms/one/provider/p/appointments/withoutNotification', {}],
      ['/crms/one/provider/p/appointments/withoutNotification?seriesId=s', { appointmentReference: 'a' }],
    ] as const) {
      expect(await gateway.send('DELETE', path, body)).toMatchObject({
        status: 400,
        problem: { code: 'request.invalid' },
      });
    }
  });

  it.each([
    {
      name: 'is no JSON',
      body: '{"a":',
      type: 'application/json',
      status: 400,
      code: 'request.malformed',
      detail: /^The body is not valid JSON/,
    },
    { name: 'is empty', body: '', type: 'application/json', status: 400, code: 'request.malformed' },
    {
      name: 'poisons the prototype',
      body: '{"__proto__":{"a":1}}',
      type: 'application/json',
      status: 400,
      code: 'request.malformed',
      detail: /^The body has a property "__proto__"/,
    },
    {
      name: 'poisons the constructor',
      body: '{"constructor":{"prototype":{"a":1}}}',
      type: 'application/json',
      status: 400,
      code: 'request.malformed',
      detail: /^The body has a property "__proto__"/,
    },
    { name: 'is a list', body: '[]', type: 'application/json', status: 400, code: 'request.invalid' },
    {
      name: 'has a number that is no number',
      body: '{"reference":1e999}',
      type: 'application/json',
      status: 400,
      code: 'request.invalid',
    },
    { name: 'is a text', body: 'hello', type: 'text/plain', status: 415, code: 'request.unsupported_media_type' },
    {
      name: 'is a form',
      body: 'a=b',
      type: 'application/x-www-form-urlencoded',
      status: 415,
      code: 'request.unsupported_media_type',
    },
    {
      name: 'is too large',
      body: `"${'a'.repeat(1_048_576)}"`,
      type: 'application/json',
      status: 413,
      code: 'request.too_large',
    },
  ])('whose body $name is answered with $status', async ({ body, type, status, code, detail = /./ }) => {
    const response = await fetch(`${gateway.url}/crms/one/user`, {
      method: 'POST',
      headers: { 'x-service-client-id': gateway.key, 'content-type': type },
      body,
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([
      status,
      'application/problem+json; charset=utf-8',
    ]);
    expect(await response.json()).toMatchObject({ status, code, detail: expect.stringMatching(detail) as string });
  });

  it('whose body is compressed is rejected before it is read', async () => {
    const headers = {
      'x-service-client-id': gateway.key,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': '1000000',
    };
    const sent = request(`${gateway.url}/crms/one/user`, { method: 'POST', headers });
    sent.flushHeaders();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect([response.statusCode, response.headers['accept-encoding']]).toEqual([415, 'identity']);
    expect(await json(response)).toMatchObject({ code: 'request.unsupported_media_type' });
    sent.destroy();
  });

  it.each(['a/b?c#d%e f', '%2F', '100%25', 'größe', '\u{1f600}'.repeat(253), '..', ';a=b'])(
    'reaches the service with the reference %s unchanged',
    async (reference) => {
      const user = {
        reference: `${reference}@x`,
        email: `${crypto.randomUUID()}@x.example`,
        username: crypto.randomUUID(),
        lastName: 'L',
      };
      await gateway.send('POST', '/crms/one/user', user);
      const response = await fetch(`${gateway.url}/crms/one/user/${encodeURIComponent(user.reference)}`, {
        headers: { 'x-service-client-id': gateway.key },
      });
      expect(await response.json()).toMatchObject({ user: { reference: user.reference } });
    },
  );
});

describe('an Idempotency-Key', () => {
  const send = (path: string, key: string, body: unknown) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'x-service-client-id': gateway.key, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
    });

  it.each([
    ['empty', ''],
    ['longer than 255 characters', 'k'.repeat(256)],
    ['with a space', 'two words'],
    ['with a tab', 'two\twords'],
    ['with other than ASCII characters', 'schl\u00fcssel'],
  ])('%s is rejected by every POST', async (_, key) => {
    for (const { path, body } of posts) {
      const response = await send(path, key, body);
      expect(await response.json(), path).toMatchObject({
        status: 400,
        code: 'idempotency_key.invalid',
        detail: 'The Idempotency-Key header must be 1 to 255 visible ASCII characters.',
      });
    }
  });

  it.each(['k', 'k'.repeat(255), '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'])('%s is accepted', async (key) => {
    const account = { ownerReference: 'nobody@x', accountReference: 'unheard-of@x', branch: 'misc' };
    expect(await (await send('/crms/one/account', key, account)).json()).toMatchObject({
      code: 'account.owner_not_found',
    });
  });

  it('given twice is rejected', async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = {
        'x-service-client-id': gateway.key,
        'content-type': 'application/json',
        'idempotency-key': ['a', 'b'],
      };
      request(`${gateway.url}/crms/one/account`, { method: 'POST', headers }, resolve)
        .on('error', reject)
        .end(JSON.stringify(posts[1]!.body));
    });
    expect(await json(response)).toMatchObject({ status: 400, code: 'idempotency_key.invalid' });
  });
});
