import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

let gateway: GatewayWithKeys;

beforeAll(async () => {
  gateway = await startGatewayWithKeys();
});
afterAll(() => gateway[Symbol.asyncDispose]());

function ask(key: string, crmId = 'one'): Promise<Response> {
  return fetch(`${gateway.url}/crms/${crmId}/user/nobody`, { headers: { 'x-service-client-id': key } });
}

async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { code: string }).code;
}

describe('a key', () => {
  it('grants access to its CRM', async () => {
    expect(await codeOf(await ask(gateway.key))).toBe('user.not_found');
  });

  it.each(['unknown', 'x'.repeat(2_000), `${'a'.repeat(30)}, ${'b'.repeat(30)}`])(
    'that was never issued is rejected',
    async (key) => {
      const response = await ask(key);
      expect([response.status, await codeOf(response)]).toEqual([401, 'key.invalid']);
    },
  );

  it('of another CRM is rejected with the same message, whether the CRM exists or not', async () => {
    const withoutId = async (response: Response) => {
      const { instance: _, ...problem } = (await response.json()) as Record<string, unknown>;
      return { status: response.status, problem };
    };
    const foreign = await withoutId(await ask(gateway.key, 'two'));
    expect(foreign).toMatchObject({ status: 403, problem: { code: 'crm.forbidden' } });
    expect(await withoutId(await ask(gateway.key, 'absent'))).toEqual(foreign);
  });

  it('is checked before the body', async () => {
    const response = await fetch(`${gateway.url}/crms/two/user`, {
      method: 'POST',
      headers: { 'x-service-client-id': gateway.key, 'content-type': 'application/json' },
      body: '{ not json',
    });
    expect(response.status).toBe(403);
  });

  it('stops working immediately when it is revoked, although it was cached', async () => {
    const { key, apiKey } = await gateway.admin.createKey({ crmId: 'one' });
    expect((await ask(key)).status).toBe(404);
    await gateway.admin.revokeKey({ prefix: apiKey!.prefix });
    await vi.waitFor(async () => expect((await ask(key)).status).toBe(401), { timeout: 5_000, interval: 20 });
  });

  it('stops working when it expires', async () => {
    const { key } = await gateway.admin.createKey({ crmId: 'one', expiresAt: new Date(Date.now() + 10_000) });
    expect((await ask(key)).status).toBe(404);
    await eventually(async () => expect((await ask(key)).status).toBe(401));
  });
});

describe('the rate limit', () => {
  it('rejects requests beyond it, and says when to retry', async () => {
    await gateway.admin.createCrm({ crmId: 'limited', requestsPerMinute: 2 });
    const { key } = await gateway.admin.createKey({ crmId: 'limited' });
    const first = await ask(key, 'limited');
    expect(first.headers.get('ratelimit-policy')).toBe('"key";q=2;w=60');
    expect(first.headers.get('ratelimit')).toMatch(/^"key";r=1;t=\d+$/);
    expect((await ask(key, 'limited')).status).toBe(404);
    const sentMs = performance.now();
    const refused = await ask(key, 'limited');
    expect(refused.status).toBe(429);
    // A client that ignores Retry-After does not keep the gateway busy.
    expect(performance.now() - sentMs).toBeGreaterThan(200);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.headers.get('ratelimit')).toMatch(/^"key";r=0;t=\d+$/);
    expect(await codeOf(refused)).toBe('rate.limited');
  });

  it('follows a change of the settings of its CRM', async () => {
    await gateway.admin.updateCrm({ crmId: 'limited', requestsPerMinute: 3 });
    const { key } = await gateway.admin.createKey({ crmId: 'limited' });
    const limitSeen = async () => (await ask(key, 'limited')).headers.get('ratelimit-policy');
    expect(await limitSeen()).toBe('"key";q=3;w=60');
    await gateway.admin.updateCrm({ crmId: 'limited', requestsPerMinute: 100 });
    await eventually(async () => expect(await limitSeen()).toBe('"key";q=100;w=60'));
  });

  it('is absent for a CRM without one', async () => {
    expect((await ask(gateway.key)).headers.get('ratelimit')).toBeNull();
  });
});

it('answers 503 for a key that is not cached while identity is down, and 503 for everything that needs identity with a cached one', async () => {
  const { key: unseen } = await gateway.admin.createKey({ crmId: 'one' });
  expect((await ask(gateway.key)).status).toBe(404);
  await gateway.services.identity[Symbol.asyncDispose]();
  for (const key of [unseen, gateway.key]) {
    const response = await ask(key);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  }
  // The cached key still grants access to whatever does not need identity.
  const response = await fetch(`${gateway.url}/crms/one/user`, {
    method: 'POST',
    headers: { 'x-service-client-id': gateway.key },
  });
  expect(response.status).toBe(400);
});
