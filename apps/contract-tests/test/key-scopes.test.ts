import { KeyScope } from '@scheduling/contracts/identity/v1';
import { createAdminClient } from '@scheduling/stack/admin-client';
import type { Place } from '@scheduling/test-stack/api-document';
import { type Answer, apiDocument, type Client, createClient, path } from '@scheduling/test-stack/client';
import { createCrm, type Practice, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { someOf } from '@scheduling/testing';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { cases, newReference, type Request, sendRequest, type World } from './isolation/operation-cases.ts';
import { snapshot, waitUntilQuiet } from './isolation/snapshot.ts';
import { createWorld } from './isolation/world.ts';

/** What keys with a narrow scope can do (interface 5.1), over every operation of the API document. */
const { places } = await apiDocument();
const scopes = ['read', 'book', 'all'] as const;
type Scope = (typeof scopes)[number];
/** Those that a key with this scope may call, and those that it may not. */
const permitted = (held: Scope) => places.filter((place) => rank(scopeOf(place)) <= rank(held));
const refused = (held: Scope) => places.filter((place) => rank(scopeOf(place)) > rank(held));

let crm: TestCrm;
let practice: Practice;
let world: World;
let before: Record<string, string[]>;
/** Everything that lets somebody without a key read or change something. */
let secrets: string[];
const keys = {} as Record<Scope, TestCrm>;

beforeAll(async () => {
  crm = await createCrm({ sandbox: true });
  ({ practice, world } = await createWorld(crm));
  keys.all = crm;
  keys.read = await withScope(KeyScope.READ);
  keys.book = await withScope(KeyScope.BOOK);
  secrets = await makeSecrets();
  await waitUntilQuiet([crm]);
  before = await snapshot([crm]);
});

async function withScope(scope: KeyScope): Promise<TestCrm> {
  using admin = createAdminClient(inject('stack').admin.identity);
  const { key } = await admin.createKey({ crmId: crm.crmId, scope });
  return { crmId: crm.crmId, key, ...createClient(inject('stack'), crm.crmId, key) };
}

describe.each(['read', 'book'] as const)('a key with the scope %s', (held) => {
  it.each(refused(held).map((place) => [place.operation.operationId, place] as const))(
    'is refused %s, whatever the request contains',
    async (operationId, place) => {
      const needed = scopeOf(place);
      const expected = {
        status: 403,
        body: {
          code: 'key.scope_insufficient',
          detail: `This key has the scope ${held}. This operation needs ${needed}.`,
        },
      };
      const request = cases[operationId]!.request(world, practice);
      expect(await sendRequest(keys[held], place, request)).toMatchObject(expected);
      const absent = mapValues(request.path, newReference);
      expect(await sendRequest(keys[held], place, { ...request, path: absent })).toMatchObject(expected);
      if (place.method === 'get') return expect(await statusOfHead(keys[held], place, request)).toBe(403);
      for (const [rawBody, headers] of [
        ['{', {}],
        ['x', { 'content-type': 'text/plain' }],
        ['x', { 'content-encoding': 'gzip' }],
        ['{"unknown":1}', { prefer: 'handling=strict' }],
      ] as const)
        expect(await sendRaw(keys[held], place, request, rawBody, headers)).toMatchObject(expected);
    },
  );

  it('has changed nothing by what it was refused', async () => {
    expect(await snapshot([crm])).toEqual(before);
  });
});

describe('a key with the scope read', () => {
  it.each(permitted('read').map((place) => [place.operation.operationId, place] as const))(
    'can %s, and gets nothing that works without a key',
    async (operationId, place) => {
      const request = cases[operationId]!.request(world, practice);
      const { status, text } = await sendRequest(keys.read, place, request);
      expect(status, text).toBe(200);
      if (operationId.startsWith('list')) expect(text).not.toBe('[]');
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
      expect(await statusOfHead(keys.read, place, request)).toBe(200);
    },
  );

  it('has changed nothing by what it has read', async () => {
    expect(await snapshot([crm])).toEqual(before);
  });
});

describe('a key with the scope book', () => {
  it.each(someOf(permitted('book').map((place) => [place.operation.operationId, place] as const)))(
    'can %s',
    async (operationId, place) => {
      const made = scopeOf(place) === 'book' ? await createWorld(crm) : { world, practice };
      const { status, text } = await sendRequest(
        keys.book,
        place,
        cases[operationId]!.request(made.world, made.practice),
      );
      expect([200, 201, 202, 204], text).toContain(status);
    },
  );
});

describe('a refusal', () => {
  const customers = (client: Client, reference: string) =>
    client.post(
      `${practice.at}/customers`,
      { customerReference: reference, providerReference: practice.provider, userName: 'Ada' },
      { headers: { 'idempotency-key': reference } },
    );

  it('does not use the Idempotency-Key', async () => {
    const reference = unique('customer');
    expect(await customers(keys.read, reference)).toMatchObject({ status: 403 });
    const created = await customers(keys.book, reference);
    expect([created.status, created.headers.get('idempotency-replayed')]).toEqual([201, null]);
    // And a refusal never repeats the response of a request that was permitted.
    expect(await customers(keys.read, reference)).toMatchObject({ status: 403 });
  });

  it('counts for the rate limit, which comes first', async () => {
    using admin = createAdminClient(inject('stack').admin.identity);
    const { crmId } = await createCrm({ requestsPerMinute: 2 });
    const { key } = await admin.createKey({ crmId, scope: KeyScope.READ });
    const client = createClient(inject('stack'), crmId, key);
    for (const remaining of [1, 0]) {
      const answer = await client.post('/user', {});
      expect([answer.status, answer.headers.get('ratelimit')]).toEqual([
        403,
        expect.stringMatching(`^"key";r=${remaining};`),
      ]);
    }
    expect(await client.post('/user', {})).toMatchObject({ status: 429, body: { code: 'rate.limited' } });
  });

  it('of a request about another CRM is that of every other key', async () => {
    const other = createClient(inject('stack'), (await createCrm()).crmId, keys.read.key);
    for (const answer of [await other.get('/webhooks'), await other.post('/user', {})])
      expect(answer).toMatchObject({ status: 403, body: { code: 'crm.forbidden' } });
  });
});

function rank(scope: Scope): number {
  return scopes.indexOf(scope);
}

function scopeOf({ operation }: Place): Scope {
  return operation['x-required-scope']!;
}

/** From the responses to requests with a key that permits everything. */
async function makeSecrets(): Promise<string[]> {
  const calendar = { reference: newReference(), resourceReference: world.resource };
  const sources = [
    await crm.get(path`/provider/${world.provider}/participations/${world.participation}/link`),
    await crm.get(path`/provider/${world.provider}/customers/${world.customer}/invitations`),
    await crm.post(path`/provider/${world.provider}/calendars`, calendar),
  ];
  const { body } = await crm.post<{ webhook: { secret: string } }>(path`/webhooks/${world.webhook}/secret`, undefined);
  const tokens = sources.map(({ text }) => text.match(/[\w-]{40,}/g) ?? []);
  for (const [index, found] of tokens.entries()) expect(found, sources[index]!.text).not.toEqual([]);
  return [...tokens.flat(), body.webhook.secret];
}

function sendRaw(
  client: Client,
  place: Place,
  { path: references }: Request,
  rawBody: string,
  headers: Record<string, string>,
): Promise<Answer> {
  return client.send(place.method.toUpperCase(), addressOf(place, references), undefined, { rawBody, headers });
}

async function statusOfHead({ crmId, key }: TestCrm, place: Place, request: Request): Promise<number> {
  const address = `${inject('stack').gateway}/crms/${crmId}${addressOf(place, request.path)}`;
  const query = new URLSearchParams(request.query).toString();
  return (await fetch(`${address}?${query}`, { method: 'HEAD', headers: { 'x-service-client-id': key } })).status;
}

function addressOf({ path: pattern }: Place, references: Record<string, string>): string {
  return pattern
    .replace('/crms/{crmId}', '')
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(references[name]!));
}

function mapValues(object: Record<string, string>, map: () => string): Record<string, string> {
  return Object.fromEntries(Object.keys(object).map((key) => [key, map()]));
}
