import { type AuthenticateKeyResponse, type Crm, KeyScope } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createKeyRing } from './key-ring.ts';

const crm = { crmId: 'one' } as Crm;
const known: AuthenticateKeyResponse = { crm, keyPrefix: 'sk', expiresAt: undefined };

/** A key ring with a manual clock, and a counter of its look-ups. */
function keyRing(answer: () => Promise<AuthenticateKeyResponse>) {
  const state = { nowMs: 0, hears: true, lookUps: 0 };
  const ring = createKeyRing({
    lookUp: () => {
      state.lookUps += 1;
      return answer();
    },
    hearsRevocations: () => state.hears,
    now: () => state.nowMs,
  });
  return { ring, state };
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

describe('a known key', () => {
  it('is cached for 30 s', async () => {
    const { ring, state } = keyRing(async () => known);
    await ring.authenticate('k');
    state.nowMs = 29_999;
    await ring.authenticate('k');
    expect(state.lookUps).toBe(1);
    state.nowMs = 30_000;
    await ring.authenticate('k');
    expect(state.lookUps).toBe(2);
  });

  it('is not cached past its expiry', async () => {
    const { ring, state } = keyRing(async () => ({ ...known, expiresAt: new Date(10_000) }));
    await ring.authenticate('k');
    state.nowMs = 10_000;
    await ring.authenticate('k');
    expect(state.lookUps).toBe(2);
  });

  it('is cached for less than 5 s while revocations cannot be received', async () => {
    const { ring, state } = keyRing(async () => known);
    await ring.authenticate('k');
    state.hears = false;
    state.nowMs = 4_000;
    await ring.authenticate('k');
    expect(state.lookUps).toBe(2);
  });

  it('is looked up once for concurrent requests', async () => {
    const { ring, state } = keyRing(async () => known);
    await Promise.all(Array.from({ length: 50 }, () => ring.authenticate('k')));
    expect(state.lookUps).toBe(1);
  });

  it('is looked up again after it, its CRM or everything was evicted', async () => {
    const { ring, state } = keyRing(async () => known);
    for (const forget of [() => ring.forgetKey(hashOf('k')), () => ring.forgetCrm('one'), () => ring.forgetAll()]) {
      await ring.authenticate('k');
      const before = state.lookUps;
      forget();
      await ring.authenticate('k');
      expect(state.lookUps).toBe(before + 1);
    }
  });

  it('is not cached if it was revoked during the look-up', async () => {
    const answer = Promise.withResolvers<AuthenticateKeyResponse>();
    const { ring, state } = keyRing(() => answer.promise);
    const first = ring.authenticate('k');
    ring.forgetKey(hashOf('k'));
    answer.resolve(known);
    await first;
    await ring.authenticate('k');
    expect(state.lookUps).toBe(2);
  });
});

describe('the scope of a key', () => {
  it.each([
    [KeyScope.READ, 'read'],
    [KeyScope.BOOK, 'book'],
    [KeyScope.ALL, 'all'],
    // Of an identity that has no scopes yet.
    [undefined, 'all'],
  ])('%s is cached as %s, with the rest that identity says', async (scope, expected) => {
    const [createdAt, expiresAt] = [new Date(-1), new Date(60_000)];
    const { ring, state } = keyRing(async () => ({ ...known, scope, createdAt, expiresAt }));
    for (let times = 0; times < 2; times += 1)
      expect(await ring.authenticate('k')).toMatchObject({ scope: expected, createdAt, expiresAt });
    expect(state.lookUps).toBe(1);
  });

  it.each([KeyScope.UNSPECIFIED, KeyScope.UNRECOGNIZED])(
    '%s is unknown to this gateway, and so is the key',
    async (scope) => {
      const { ring } = keyRing(async () => ({ ...known, scope }));
      await expect(ring.authenticate('k')).rejects.toMatchObject({ code: 'key.invalid' });
    },
  );
});

describe('an unknown key', () => {
  const refuse = () => Promise.reject(new DomainError('key.invalid'));

  it('is rejected for 5 s without another look-up', async () => {
    const { ring, state } = keyRing(refuse);
    await expect(ring.authenticate('k')).rejects.toMatchObject({ code: 'key.invalid' });
    state.nowMs = 4_999;
    state.hears = true;
    await expect(ring.authenticate('k')).rejects.toMatchObject({ code: 'key.invalid' });
    expect(state.lookUps).toBe(1);
    state.nowMs = 5_000;
    await expect(ring.authenticate('k')).rejects.toMatchObject({ code: 'key.invalid' });
    expect(state.lookUps).toBe(2);
  });
});

it('does not cache the failure of a look-up while identity is down', async () => {
  let away = true;
  const { ring } = keyRing(() =>
    away ? Promise.reject(new DomainError('service.unavailable')) : Promise.resolve(known),
  );
  await expect(ring.authenticate('k')).rejects.toMatchObject({ category: 'unavailable' });
  away = false;
  expect(await ring.authenticate('k')).toMatchObject({ crm });
});
