import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

let gateway: GatewayWithKeys;

beforeAll(async () => {
  gateway = await startGatewayWithKeys();
});
afterAll(() => gateway[Symbol.asyncDispose]());

type Kind = 'line' | 'text' | 'reference' | 'email' | 'username' | 'dateTime' | 'integer' | 'boolean' | 'enum' | 'language' | 'object';

interface Field {
  name: string;
  kind: Kind;
  required: boolean;
  /** Longest text, in code points. */
  maxLength?: number;
}

interface Operation {
  method: string;
  path: string;
  body: Record<string, unknown>;
  /** Pointer to the object that has the fields. */
  at?: string;
  fields: Field[];
}

const required = (name: string, kind: Kind = 'line', maxLength = 255): Field => ({ name, kind, required: true, maxLength });
const optional = (name: string, kind: Kind = 'line', maxLength = 255): Field => ({ name, kind, required: false, maxLength });

const slot = { resourceReference: 'r', end: '2030-01-01T10:00', raster: 30, defaultCapacity: 1, defaultAcceptBookings: true, state: 'CREATED' };
const participant = { reference: 'p', name: 'N', email: 'n@x.example', state: 'BOOKED' };
const single = { reference: 'a', start: '2030-01-01T09:00', end: '2030-01-01T10:00', resourceReference: 'r', productReference: 'p' };
const span = { from: '2030-01-01T09:00', to: '2030-01-01T10:00', raster: 30 };

/** The tables of interface 2 and 4. */
const operations: Operation[] = [
  {
    method: 'POST',
    path: '/crms/one/user',
    body: { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' },
    fields: [
      required('reference', 'reference'),
      required('email', 'email', 254),
      required('username', 'username'),
      required('lastName'),
      optional('firstName'),
      optional('phone'),
      optional('mobile'),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/account',
    body: { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' },
    fields: [
      required('ownerReference'),
      required('accountReference'),
      required('branch'),
      optional('invoiceAddress', 'object'),
      optional('invoiceContactName'),
      optional('invoiceCompanyName'),
      optional('invoiceTaxId'),
      optional('email', 'email', 254),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/account',
    body: {
      ownerReference: 'u@x',
      accountReference: 'a@x',
      branch: 'misc',
      invoiceAddress: { city: 'c', countryCode: 'DE', street: 's', number: '1', zip: 'z' },
    },
    at: '/invoiceAddress',
    fields: [required('city'), required('countryCode'), required('street'), required('number'), required('zip')],
  },
  {
    method: 'POST',
    path: '/crms/one/provider',
    body: { reference: 'p', ownerReference: 'u@x', accountReference: 'a@x', name: 'N' },
    fields: [
      required('reference'),
      required('ownerReference'),
      required('accountReference'),
      required('name'),
      optional('email', 'email', 254),
      optional('mobile'),
      optional('phone'),
      optional('impressum', 'text', 10_000),
      optional('branch'),
      optional('subbranch'),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/staff',
    body: { email: 'u@x.example', username: 'u', lastName: 'L' },
    fields: [required('email', 'email', 254), required('username', 'username'), required('lastName'), optional('language', 'language')],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/timeslots',
    body: { timeslots: [{ ...slot }, { ...slot }] },
    at: '/timeslots/1',
    fields: [
      optional('reference'),
      required('resourceReference'),
      optional('start', 'dateTime'),
      required('end', 'dateTime'),
      required('raster', 'integer'),
      required('defaultCapacity', 'integer'),
      required('defaultAcceptBookings', 'boolean'),
      required('state', 'enum'),
      optional('address', 'text', 1_024),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/appointments',
    body: single,
    fields: [
      required('reference'),
      required('start', 'dateTime'),
      required('end', 'dateTime'),
      optional('capacity', 'integer'),
      optional('acceptBookings', 'boolean'),
      required('resourceReference'),
      required('productReference'),
      optional('productName'),
      optional('contactReference'),
      optional('notes', 'text', 1_024),
      optional('price', 'object'),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/appointments',
    body: { ...single, participations: [participant] },
    at: '/participations/0',
    fields: [
      required('reference'),
      required('name'),
      required('email', 'email', 254),
      optional('mobile'),
      optional('note', 'text', 1_024),
      required('state', 'enum'),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/appointments',
    body: { resourceReference: 'r', productReference: 'p', series_data: span },
    at: '/series_data',
    fields: [required('from', 'dateTime'), required('to', 'dateTime'), required('raster', 'integer')],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/participations',
    body: { reference: 'b', appointmentReference: 'a', customerReference: 'c', state: 'BOOKED' },
    fields: [
      required('reference'),
      required('appointmentReference'),
      required('customerReference'),
      required('state', 'enum'),
      optional('message', 'text', 1_024),
    ],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/participations/b',
    body: { state: 'BOOKED' },
    fields: [required('state', 'enum'), optional('message', 'text', 1_024)],
  },
  {
    method: 'POST',
    path: '/crms/one/provider/p/customers',
    body: { customerReference: 'c', providerReference: 'p', userName: 'N' },
    fields: [
      required('customerReference'),
      required('providerReference'),
      required('userName'),
      optional('email', 'email', 254),
      optional('mobile'),
      optional('note', 'text', 1_023),
      optional('language', 'language'),
    ],
  },
];

const texts = new Set<Kind>(['line', 'text', 'reference', 'email', 'username', 'dateTime', 'enum', 'language']);

/** Every wrong value of a field, by what is wrong with it. */
function wrongValues({ kind, required, maxLength }: Field): [string, unknown][] {
  const isText = texts.has(kind);
  return [
    ...(required ? ([['missing', undefined], ['null', null]] as [string, unknown][]) : []),
    ...(required && isText ? ([['empty', ''], ['blank', '   ']] as [string, unknown][]) : []),
    ['of the wrong type', isText ? 5 : 'text'],
    ['a list', ['x']],
    ...(['line', 'text', 'reference', 'username', 'email'].includes(kind) ? ([['too long', fill(kind, maxLength! + 1)]] as [string, unknown][]) : []),
    ...(isText ? ([['with a control character', 'a\u0000b@x'], ['with an escape', 'a\u001bb@x'], ['with half a character', 'a\ud800@x']] as [string, unknown][]) : []),
    ...(isText && kind !== 'text' ? ([['with a line break', 'a\nb@x']] as [string, unknown][]) : []),
    ...special[kind].map((value): [string, unknown] => [`such as ${JSON.stringify(value)}`, value]),
  ];
}

const special: Record<Kind, unknown[]> = {
  line: [],
  text: [],
  object: [{ wrong: true }],
  reference: ['noAt', 'two@at@signs', '@platform', 'id@'],
  email: ['nobody', 'a@', '@b', 'a b@c.example', 'a@b..c', 'a@-b'],
  username: ['a/b', 'a?b', 'a:b', 'a&b', 'a#b', 'a\\b'],
  dateTime: [
    '2030-01-01',
    '2030-01-01 10:00',
    '2030-02-30T10:00',
    '2029-02-29T10:00',
    '2030-13-01T10:00',
    '2030-01-01T24:00',
    '2030-01-01T10:60',
    '2030-01-01T10:00:61',
    '2030-01-01T10:00:00.5',
    '2030-01-01T10:00+1',
    '0000-01-01T10:00',
    '+12030-01-01T10:00',
  ],
  integer: [1.5, -1, 1e12, '30'],
  boolean: ['true', 1],
  enum: ['UNKNOWN', 'booked'],
  language: ['not a language', 'x'],
};

/** A text of so many code points that is right but for its length. */
function fill(kind: Kind, length: number): string {
  if (kind === 'reference') return `${'\u{1f600}'.repeat(length - 2)}@x`;
  if (kind === 'email') return `${'a'.repeat(10)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(length - 194)}`;
  return '\u{1f600}'.repeat(length);
}

function withField({ body, at = '' }: Operation, name: string, value: unknown): Record<string, unknown> {
  const copy = structuredClone(body);
  let target: Record<string, unknown> = copy;
  for (const step of at.split('/').slice(1)) target = target[step] as Record<string, unknown>;
  if (value === undefined) delete target[name];
  else target[name] = value;
  return copy;
}

const cases = operations.flatMap((operation) =>
  operation.fields.flatMap((field) =>
    wrongValues(field).map(([wrong, value]) => ({
      title: `${operation.method} ${operation.path}: ${operation.at ?? ''}/${field.name} ${wrong}`,
      operation,
      field,
      value,
    })),
  ),
);

describe('a field that is wrong is named', () => {
  it.each(cases)('$title', async ({ operation, field, value }) => {
    const { status, problem } = await gateway.send(operation.method, operation.path, withField(operation, field.name, value));
    const pointer = `${operation.at ?? ''}/${field.name}`;
    expect({ status, code: problem.code }).toEqual({ status: 400, code: 'request.invalid' });
    expect(problem.errors!.length).toBeGreaterThan(0);
    for (const error of problem.errors!) expect(error).toMatchObject({ pointer: expect.stringContaining(pointer), detail: expect.any(String) });
  });
});

describe('a field that is right passes', () => {
  // The calendar and customer services are away: what is valid gets as far as them, or to an answer of identity.
  const passing = operations.flatMap((operation) =>
    operation.fields
      // This one is the provider in the address.
      .filter(({ name }) => name !== 'providerReference')
      .flatMap((field) => rightValues(field).map((value) => ({ operation, field, value }))),
  );

  it.each(passing)('$operation.path $field.name: $value', async ({ operation, field, value }) => {
    const { problem } = await gateway.send(operation.method, operation.path, withField(operation, field.name, value));
    expect(problem.code).not.toBe('request.invalid');
  });
});

function rightValues({ kind, required, maxLength }: Field): unknown[] {
  const absent = required ? [] : [null, undefined];
  switch (kind) {
    case 'line':
    case 'text':
      return [...absent, ...(required || kind === 'text' ? [] : ['']), 'Ä b/?#%'];
    case 'reference':
      return [fill(kind, maxLength!), 'a b/c?d#e%f@ü'];
    case 'email':
      return [...absent, 'jörg+tag@bücher.example', "o'neill@x"];
    case 'username':
      return ['a.b-c_d@e'];
    case 'dateTime':
      return [...absent, '2028-02-29T00:00', '2030-01-01T10:00:59', '2030-01-01T10:00Z', '2030-01-01T10:00:00-05:30'];
    case 'integer':
      return [...absent, 30, 30.0];
    case 'boolean':
      return [...absent, true, false];
    case 'language':
      return [...absent, 'de', 'en-GB', 'zh-Hant-TW'];
    case 'enum':
    case 'object':
      return absent;
    default:
      return kind satisfies never;
  }
}

describe('a request', () => {
  it('is told of all wrong fields at once', async () => {
    const timeslots = Array.from({ length: 500 }, () => ({ ...slot, end: 'x', raster: 0 }));
    const { problem } = await gateway.send('POST', '/crms/one/provider/p/timeslots', { timeslots });
    expect(problem.errors).toHaveLength(1_000);
    expect(problem.errors).toContainEqual({ pointer: '/timeslots/499/raster', detail: 'must be at least 1' });
  });

  it.each([
    { name: 'timeslots', path: '/crms/one/provider/p/timeslots', body: { timeslots: Array.from({ length: 501 }, () => 0) } },
    { name: 'participations', path: '/crms/one/provider/p/appointments', body: { ...single, participations: Array.from({ length: 501 }, () => 0) } },
    { name: 'timeslots', path: '/crms/one/provider/p/timeslots', body: { timeslots: Array.from({ length: 400_000 }, () => 0) } },
  ])('with too many $name is refused for that alone', async ({ name, path, body }) => {
    const { status, problem } = await gateway.send('POST', path, body);
    expect({ status, errors: problem.errors }).toEqual({
      status: 400,
      errors: [{ pointer: `/${name}`, detail: 'must not have more than 500 elements' }],
    });
  });

  it('with no timeslots is refused', async () => {
    const { problem } = await gateway.send('POST', '/crms/one/provider/p/timeslots', { timeslots: [] });
    expect(problem.errors).toEqual([{ pointer: '/timeslots', detail: 'must not be empty' }]);
  });

  it('may have fields that nobody knows', async () => {
    const { problem } = await gateway.send('POST', '/crms/one/account', {
      ownerReference: 'nobody@x',
      accountReference: 'unheard-of@x',
      branch: 'misc',
      future: { field: 1 },
    });
    expect(problem.code).toBe('account.owner_not_found');
  });

  it.each([
    { query: 'from=2030-01-01&to=x', parameters: ['from', 'to'] },
    { query: '', parameters: ['from', 'to'] },
    { query: 'from=2030-01-01T10:00&to=2030-01-02T10:00&limit=0', parameters: ['limit'] },
    { query: 'from=2030-01-01T10:00&to=2030-01-02T10:00&limit=1.5', parameters: ['limit'] },
    { query: 'from=2030-01-01T10:00&from=2030-01-01T11:00&to=2030-01-02T10:00', parameters: ['from'] },
  ])('with the query "$query" is told of the parameters', async ({ query, parameters }) => {
    const { status, problem } = await gateway.send('GET', `/crms/one/provider/p/resource/r/timeslots?${query}`);
    expect(status).toBe(400);
    expect(problem.errors!.map((error) => ('parameter' in error ? error.parameter : error))).toEqual(parameters);
  });

  it.each(['1', 'yes', '', 'TRUE'])('with the flag "%s" is refused', async (flag) => {
    const { problem } = await gateway.send('GET', `/crms/one/provider/p/appointments?includeArchived=${flag}`);
    expect(problem.errors).toEqual([{ parameter: 'includeArchived', detail: 'must be true or false' }]);
  });

  it('is told which types it should have, in the words of JSON', async () => {
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
    expect(Object.fromEntries(problem.errors!.map((error) => ['pointer' in error ? error.pointer : '', error.detail]))).toEqual({
      '/reference': 'must be a string',
      '/productName': 'must be a string or null',
      '/capacity': 'must be an integer or null',
      '/acceptBookings': 'must be true, false or null',
      '/price': 'must be an object or null',
      '/participations': 'must be an array or null',
      '/address': 'must be an object, a string or null',
    });
  });

  it('to delete is told when body and query differ', async () => {
    const { problem } = await gateway.send('DELETE', '/crms/one/provider/p/appointments?appointmentReference=a', { appointmentReference: 'b' });
    expect(problem.errors).toEqual([{ pointer: '/appointmentReference', detail: 'has different values in the body and the query' }]);
  });

  it('to delete says what to delete', async () => {
    for (const [path, body] of [
      ['/crms/one/provider/p/appointments', undefined],
      ['/crms/one/provider/p/appointments/withoutNotification', {}],
      ['/crms/one/provider/p/appointments/withoutNotification?seriesId=s', { appointmentReference: 'a' }],
    ] as const) {
      expect(await gateway.send('DELETE', path, body)).toMatchObject({ status: 400, problem: { code: 'request.invalid' } });
    }
  });

  it.each([
    { name: 'is no JSON', body: '{"a":', type: 'application/json', status: 400, code: 'request.malformed' },
    { name: 'is empty', body: '', type: 'application/json', status: 400, code: 'request.malformed' },
    { name: 'poisons the prototype', body: '{"__proto__":{"a":1}}', type: 'application/json', status: 400, code: 'request.malformed' },
    { name: 'poisons the constructor', body: '{"constructor":{"prototype":{"a":1}}}', type: 'application/json', status: 400, code: 'request.malformed' },
    { name: 'is a list', body: '[]', type: 'application/json', status: 400, code: 'request.invalid' },
    { name: 'has a number that is no number', body: '{"reference":1e999}', type: 'application/json', status: 400, code: 'request.invalid' },
    { name: 'is a text', body: 'hello', type: 'text/plain', status: 415, code: 'request.unsupported_media_type' },
    { name: 'is a form', body: 'a=b', type: 'application/x-www-form-urlencoded', status: 415, code: 'request.unsupported_media_type' },
    { name: 'is too large', body: `"${'a'.repeat(1_048_576)}"`, type: 'application/json', status: 413, code: 'request.too_large' },
  ])('whose body $name is answered with $status', async ({ body, type, status, code }) => {
    const response = await fetch(`${gateway.url}/crms/one/user`, {
      method: 'POST',
      headers: { 'x-service-client-id': gateway.key, 'content-type': type },
      body,
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/problem+json; charset=utf-8']);
    expect(await response.json()).toMatchObject({ status, code });
  });

  it.each(['a/b?c#d%e f', '%2F', '100%25', 'größe', '\u{1f600}'.repeat(253), '..', ';a=b'])(
    'reaches the service with the reference %s as it is',
    async (reference) => {
      const user = { reference: `${reference}@x`, email: `${crypto.randomUUID()}@x.example`, username: crypto.randomUUID(), lastName: 'L' };
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
  ])('%s is refused by every POST', async (_, key) => {
    for (const { path, body } of operations.filter(({ method }) => method === 'POST')) {
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
    expect(await (await send('/crms/one/account', key, account)).json()).toMatchObject({ code: 'account.owner_not_found' });
  });

  it('given twice is refused', async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'x-service-client-id': gateway.key, 'content-type': 'application/json', 'idempotency-key': ['a', 'b'] };
      request(`${gateway.url}/crms/one/account`, { method: 'POST', headers }, resolve).on('error', reject).end(JSON.stringify(operations[1]!.body));
    });
    expect(await json(response)).toMatchObject({ status: 400, code: 'idempotency_key.invalid' });
  });
});
