import { KeyScope } from '@scheduling/contracts/identity/v1';
import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type AdminClient, createAdminClient } from '@scheduling/stack/admin-client';
import { type Answer, type Client, createClient } from '@scheduling/test-stack/client';
import { createCrm, type TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

let admin: AdminClient;
let crm: TestCrm;
beforeAll(async () => {
  admin = createAdminClient(inject('stack').admin.identity);
  crm = await createCrm();
  return () => admin[Symbol.dispose]();
});

/** interface 5: a revoked key stops working within 5 s. */
const revocationMs = 5_000;
const known = { status: 404, body: { code: 'user.not_found' } };
const refused = { status: 401, body: { code: 'key.invalid' } };

function withKey(key: string | undefined, crmId = crm.crmId): Client {
  return createClient(inject('stack'), crmId, key);
}

function ask(client: Client): Promise<Answer> {
  return client.get('/user/nobody%40test');
}

async function waitUntilAnswered(client: Client, status: number, timeoutMs: number): Promise<Answer> {
  return waitUntil(
    async () => {
      const answer = await ask(client);
      return answer.status === status && answer;
    },
    { what: `an answer with ${status}`, timeoutMs },
  );
}

describe('a request', () => {
  it('without a key is rejected', async () => {
    const answer = await ask(withKey(undefined));
    expect(answer).toMatchObject({ status: 401, body: { code: 'key.missing' } });
    expect(answer.headers.get('www-authenticate')).toContain('X-SERVICE-CLIENT-ID');
    expect(await ask(withKey(''))).toMatchObject({ status: 401, body: { code: 'key.missing' } });
  });

  it.each(['unknown', 'x'.repeat(5_000), "' OR 1=1 --"])('with the key %s is rejected', async (key) => {
    expect(await ask(withKey(key))).toMatchObject(refused);
  });

  it('with a key that differs in its last character, or in case, is rejected', async () => {
    expect(await ask(withKey(`${crm.key.slice(0, -1)}${crm.key.endsWith('A') ? 'B' : 'A'}`))).toMatchObject(refused);
    expect(await ask(withKey(crm.key.toUpperCase()))).toMatchObject(refused);
  });

  it('with a valid key and another crmId is forbidden, whether that CRM exists or not', async () => {
    const other = await createCrm();
    const [existing, missing] = await Promise.all(
      [other.crmId, 'crm-000000000000'].map((crmId) =>
        withKey(crm.key, crmId).get('/user/nobody%40test', { headers: { 'x-request-id': 'forbidden' } }),
      ),
    );
    expect(existing).toMatchObject({ status: 403, body: { code: 'crm.forbidden' } });
    expect(missing!.text).toBe(existing!.text);
    expect(await withKey(crm.key, crm.crmId.toUpperCase()).get('/user/nobody%40test')).toMatchObject({ status: 403 });
  });

  it('is authenticated before its content is checked', async () => {
    const nonsense = { rawBody: '{' };
    expect(await withKey(undefined).post('/user', undefined, nonsense)).toMatchObject({ status: 401 });
    expect(await withKey('unknown').post('/user', {})).toMatchObject({ status: 401 });
    expect(await withKey(crm.key, 'other').post('/user', undefined, nonsense)).toMatchObject({ status: 403 });
    expect(await withKey(crm.key).post('/user', undefined, nonsense)).toMatchObject({ status: 400 });
    expect(
      await withKey('unknown').post('/user', undefined, { rawBody: 'x', headers: { 'content-type': 'text/plain' } }),
    ).toMatchObject({ status: 401 });
  });

  it('takes its request id from the client if it is valid', async () => {
    const given = await crm.get('/user/nobody%40test', { headers: { 'x-request-id': 'my-id/1' } });
    expect(given).toMatchObject({ body: { instance: 'my-id/1' } });
    const insane = await crm.get('/user/nobody%40test', { headers: { 'x-request-id': 'x'.repeat(129) } });
    expect(insane.headers.get('x-request-id')).not.toContain('xxx');
  });
});

describe('keys', () => {
  it('are rotated without an interruption: a new one is added, then the old one is revoked within 5 s', async () => {
    const { key, apiKey } = await admin.createKey({ crmId: crm.crmId });
    const second = await admin.createKey({ crmId: crm.crmId });
    const [first, next] = [withKey(key), withKey(second.key)];
    expect(await ask(first)).toMatchObject(known);
    expect(await ask(next)).toMatchObject(known);
    await admin.revokeKey({ prefix: apiKey!.prefix });
    const answer = await waitUntil(
      async () => {
        expect(await ask(next)).toMatchObject(known);
        const now = await ask(first);
        return now.status === 401 && now;
      },
      { what: 'the revoked key to be refused', timeoutMs: revocationMs },
    );
    expect(answer).toMatchObject(refused);
    expect(await ask(next)).toMatchObject(known);
  });

  it('stop working when they expire', async () => {
    const expiresAt = new Date(Date.now() + 5_000);
    const { key } = await admin.createKey({ crmId: crm.crmId, expiresAt });
    expect(await ask(withKey(key))).toMatchObject(known);
    expect(await waitUntilAnswered(withKey(key), 401, 5_000 + revocationMs)).toMatchObject(refused);
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt.getTime() - 50);
  });

  it('are stored as a hash and a prefix only', async () => {
    const { key } = await admin.createKey({ crmId: crm.crmId });
    const rows = await query<{ row: string }>(
      'identity',
      'SELECT to_jsonb(k)::text AS row FROM api_key k WHERE crm_id = $1',
      [crm.crmId],
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { row } of rows) expect(row).not.toContain(key);
    expect(key.length).toBeGreaterThanOrEqual(43);
  });
});

describe('the CRM and the key', () => {
  it('are those of the request: the settings, prefix, scope and expiry', async () => {
    const brand = { imprint: 'Acme GmbH\nBerlin', colour: '#2450c8', privacyUrl: 'https://acme.example/privacy' };
    const own = await createCrm({ name: 'Acme', language: 'en', senderAddress: 'acme@test.example', ...brand });
    const expiresAt = new Date('2099-01-01T00:00:00Z');
    const { key, apiKey } = await admin.createKey({ crmId: own.crmId, expiresAt, scope: KeyScope.BOOK });
    const settings = {
      crmId: own.crmId,
      name: 'Acme',
      sandbox: false,
      requestsPerMinute: null,
      logoUrl: null,
      ...brand,
    };
    expect(await withKey(key, own.crmId).get('')).toMatchObject({
      status: 200,
      body: {
        crm: { ...settings, language: 'en', timeZone: 'Europe/Berlin', senderAddress: 'acme@test.example' },
        key: { prefix: apiKey!.prefix, scope: 'book', expiresAt: '2099-01-01T00:00:00Z' },
      },
    });
    expect(await own.get('')).toMatchObject({
      body: { crm: settings, key: { prefix: own.key.slice(0, 12), scope: 'all', expiresAt: null } },
    });
  });

  it('of another CRM are forbidden', async () => {
    const other = await createCrm({ name: 'Secret' });
    const answer = await withKey(crm.key, other.crmId).get('');
    expect(answer).toMatchObject({ status: 403, body: { code: 'crm.forbidden' } });
    expect(answer.text).not.toContain('Secret');
  });

  it('show a change of the settings', async () => {
    const changed = await createCrm({ name: 'Before' });
    const nameShown = async () => (await changed.get<{ crm: { name: string } }>('')).body.crm.name;
    expect(await nameShown()).toBe('Before');
    await admin.updateCrm({ crmId: changed.crmId, name: 'After' });
    await waitUntil(async () => (await nameShown()) === 'After', { what: 'the new name', timeoutMs: 30_000 });
  });
});

describe('the rate limit', () => {
  it('reports the remaining requests, answers 429 beyond it, and counts each key separately', async () => {
    const limited = await createCrm({ requestsPerMinute: 5 });
    const second = await admin.createKey({ crmId: limited.crmId });
    for (let left = 4; left >= 0; left -= 1) {
      const answer = await ask(limited);
      expect(answer).toMatchObject(known);
      expect(answer.headers.get('ratelimit-policy')).toBe('"key";q=5;w=60');
      expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"key";r=${left};t=(?:[1-9]|[1-5]\\d|60)$`));
    }
    for (let more = 0; more < 3; more += 1) {
      const answer = await ask(limited);
      expect(answer).toMatchObject({ status: 429, body: { code: 'rate.limited' } });
      const retryAfter = Number(answer.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThanOrEqual(1);
      expect(retryAfter).toBeLessThanOrEqual(60);
      expect(answer.headers.get('ratelimit')).toMatch(/^"key";r=0;t=\d+$/);
    }
    expect(await limited.post('/user', {})).toMatchObject({ status: 429 });
    expect(await ask(crm)).toMatchObject(known);
    expect(await ask(withKey(second.key, limited.crmId))).toMatchObject(known);
  });

  it('is changed for a CRM at run time', async () => {
    const limited = await createCrm({ requestsPerMinute: 1 });
    expect(await ask(limited)).toMatchObject(known);
    expect(await ask(limited)).toMatchObject({ status: 429 });
    await admin.updateCrm({ crmId: limited.crmId, requestsPerMinute: 1_000 });
    await waitUntilAnswered(limited, 404, revocationMs);
  });
});
