import { KeyScope } from '@scheduling/contracts/identity/v1';
import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKey } from '../src/api-key/api-key.ts';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

const hashOf = (key: string) => createHash('sha256').update(key).digest();
const authenticate = (key: string, enforcedScopes: KeyScope[] = []) =>
  service.identity.authenticateKey({ keyHash: hashOf(key), enforcedScopes });

describe('a CRM', () => {
  it('has defaults for everything but its id', async () => {
    const { crm } = await service.admin.createCrm({ crmId: 'defaults' });
    expect(crm).toEqual({
      crmId: 'defaults',
      name: 'defaults',
      language: 'de',
      timeZone: 'Europe/Berlin',
      senderName: 'defaults',
      senderAddress: '',
      notifyOnCustomerDeletion: true,
      requestsPerMinute: 6000,
      sandbox: false,
    });
    expect((await service.identity.getCrm({ crmId: 'defaults' })).crm).toEqual(crm);
  });

  it('stores the given settings, with no rate limit for 0', async () => {
    const { crm } = await service.admin.createCrm({
      crmId: 'given',
      name: 'Given CRM',
      language: 'EN-gb',
      timeZone: 'europe/zurich',
      senderAddress: 'mail@given.example',
      notifyOnCustomerDeletion: false,
      requestsPerMinute: 0,
    });
    expect(crm).toMatchObject({
      name: 'Given CRM',
      language: 'en-GB',
      timeZone: 'Europe/Zurich',
      senderName: 'Given CRM',
      senderAddress: 'mail@given.example',
      notifyOnCustomerDeletion: false,
      requestsPerMinute: undefined,
    });
  });

  it('is created once', async () => {
    await service.admin.createCrm({ crmId: 'once' });
    expect(await refusal(service.admin.createCrm({ crmId: 'once', name: 'other' }))).toMatchObject({
      category: 'conflict',
      code: 'crm.exists',
    });
  });

  it.each(['', 'Upper', '-a', 'a-', 'a b', 'a/b', 'ä', 'a'.repeat(64)])('cannot have the id %j', async (crmId) => {
    expect(await refusal(service.admin.createCrm({ crmId }))).toMatchObject({
      category: 'invalid',
      code: 'crm.invalid',
      errors: [{ pointer: '/crmId' }],
    });
  });

  it('is rejected with every invalid setting', async () => {
    const settings = {
      language: 'x',
      timeZone: 'Mars/Base',
      senderAddress: 'nobody',
      requestsPerMinute: 2 ** 32 - 1,
      anonymiseAfterDays: 36_501,
      logoUrl: 'http://x',
      colour: '#ffffff',
      imprint: '\u0000',
      privacyUrl: 'http://x',
    };
    const pointers = [
      '/language',
      '/timeZone',
      '/senderAddress',
      '/requestsPerMinute',
      '/anonymiseAfterDays',
      '/logoUrl',
      '/colour',
      '/imprint',
      '/privacyUrl',
    ];
    const created = await refusal(service.admin.createCrm({ crmId: 'faulty', ...settings }));
    expect(created.errors.map(({ pointer }) => pointer)).toEqual(pointers);
    const updated = await refusal(service.admin.updateCrm({ crmId: 'faulty', ...settings }));
    expect(updated.errors.map(({ pointer }) => pointer)).toEqual(pointers);
  });

  it('changes only what is given, and publishes an event', async () => {
    await service.admin.createCrm({ crmId: 'changing', name: 'Before', senderName: 'Sender', language: 'en' });
    const { crm } = await service.admin.updateCrm({
      crmId: 'changing',
      name: 'After',
      senderName: '',
      requestsPerMinute: 10,
    });
    expect(crm).toMatchObject({ name: 'After', senderName: 'After', language: 'en', requestsPerMinute: 10 });
    expect(await recordedEvents(service.database, events.crmChanged)).toEqual([{ crmId: 'changing' }]);
  });

  it('has no retention period of its own until it is given one, and none any more after 0', async () => {
    const { crm: created } = await service.admin.createCrm({ crmId: 'keeping' });
    expect(created!.anonymiseAfterDays).toBeUndefined();
    const periodOf = async (crmId: string) =>
      (await service.identity.listRetentionPeriods({})).periods.find((period) => period.crmId === crmId);
    expect(await periodOf('keeping')).toBeUndefined();
    for (const anonymiseAfterDays of [36_500, 1]) {
      const { crm } = await service.admin.updateCrm({ crmId: 'keeping', anonymiseAfterDays });
      expect(crm!.anonymiseAfterDays).toBe(anonymiseAfterDays);
      expect(await periodOf('keeping')).toEqual({ crmId: 'keeping', anonymiseAfterDays });
    }
    const { crm: unchanged } = await service.admin.updateCrm({ crmId: 'keeping', name: 'Keeping' });
    expect(unchanged!.anonymiseAfterDays).toBe(1);
    const { crm: cleared } = await service.admin.updateCrm({ crmId: 'keeping', anonymiseAfterDays: 0 });
    expect(cleared!.anonymiseAfterDays).toBeUndefined();
    expect(await periodOf('keeping')).toBeUndefined();
  });

  it('has the logo, colour, imprint and privacy notice that it was given, until they are cleared', async () => {
    const brand = {
      logoUrl: 'https://cdn.example/logo.png',
      colour: '#2450c8',
      imprint: 'Acme GmbH\nBerlin',
      privacyUrl: 'https://acme.example/privacy',
    };
    expect((await service.admin.createCrm({ crmId: 'branded', ...brand })).crm).toMatchObject(brand);
    expect((await service.admin.updateCrm({ crmId: 'branded', colour: '#0B7A4B' })).crm).toMatchObject({
      ...brand,
      colour: '#0b7a4b',
    });
    expect((await service.identity.getCrm({ crmId: 'branded' })).crm).toMatchObject({ ...brand, colour: '#0b7a4b' });
    const none = { logoUrl: '', colour: '', imprint: '', privacyUrl: '' };
    const { crm: cleared } = await service.admin.updateCrm({ crmId: 'branded', ...none });
    expect(cleared).toMatchObject({
      logoUrl: undefined,
      colour: undefined,
      imprint: undefined,
      privacyUrl: undefined,
    });
  });

  it('is among those with a retention period, by their ids, if it was created with one', async () => {
    await service.admin.createCrm({ crmId: 'period-b', anonymiseAfterDays: 30 });
    await service.admin.createCrm({ crmId: 'period-0', anonymiseAfterDays: 0 });
    await service.admin.createCrm({ crmId: 'period-a', anonymiseAfterDays: 365 });
    expect(await service.identity.listRetentionPeriods({})).toEqual({
      periods: [
        { crmId: 'period-a', anonymiseAfterDays: 365 },
        { crmId: 'period-b', anonymiseAfterDays: 30 },
      ],
    });
  });

  it('is not found by another id', async () => {
    const notFound = { category: 'not_found', code: 'crm.not_found' };
    expect(await refusal(service.admin.updateCrm({ crmId: 'absent' }))).toMatchObject(notFound);
    expect(await refusal(service.identity.getCrm({ crmId: 'absent' }))).toMatchObject(notFound);
    expect(await refusal(service.admin.createKey({ crmId: 'absent' }))).toMatchObject(notFound);
    expect(await refusal(service.admin.listKeys({ crmId: 'absent' }))).toMatchObject(notFound);
    const person = { reference: 'a@crm', email: 'a@absent.example', username: 'a-absent', lastName: 'A' };
    expect(await refusal(service.identity.createUser({ crmId: 'absent', ...person }))).toMatchObject(notFound);
  });

  it('is listed by its id', async () => {
    const { crms } = await service.admin.listCrms({});
    const ids = crms.map(({ crmId }) => crmId);
    expect(ids).toEqual(ids.toSorted());
    expect(ids).toContain('defaults');
  });
});

describe('an API key', () => {
  beforeAll(async () => {
    await service.admin.createCrm({ crmId: 'keys', name: 'Keys' });
    await service.admin.createCrm({ crmId: 'other' });
  });
  const refused = { category: 'unauthenticated', code: 'key.invalid' };

  it('authenticates its CRM by its hash, which is all that is stored', async () => {
    const { key, apiKey } = await service.admin.createKey({ crmId: 'keys' });
    expect(key).toMatch(/^sk_[\w-]{43}$/);
    expect(apiKey?.prefix).toBe(key.slice(0, 12));
    const answer = await authenticate(key);
    expect(answer).toMatchObject({
      crm: { crmId: 'keys', name: 'Keys' },
      keyPrefix: apiKey?.prefix,
      expiresAt: undefined,
    });
    const row = await service.database.kysely
      .selectFrom('apiKey')
      .selectAll()
      .where('prefix', '=', apiKey!.prefix)
      .executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain(key.slice(12));
  });

  it('is one of several that work at the same time', async () => {
    const keys = [await service.admin.createKey({ crmId: 'keys' }), await service.admin.createKey({ crmId: 'keys' })];
    for (const { key } of keys) {
      expect(await authenticate(key)).toMatchObject({
        crm: { crmId: 'keys' },
      });
    }
  });

  it('is rejected when it is unknown', async () => {
    expect(await refusal(authenticate('sk_unknown'))).toMatchObject(refused);
    expect(
      await refusal(service.identity.authenticateKey({ keyHash: Buffer.alloc(0), enforcedScopes: [] })),
    ).toMatchObject(refused);
  });

  it('works until it expires by the clock of the database', async () => {
    const { key, apiKey } = await service.admin.createKey({ crmId: 'keys', expiresAt: new Date(Date.now() + 60_000) });
    const { expiresAt } = await authenticate(key);
    expect(expiresAt).toEqual(apiKey?.expiresAt);
    await service.database.kysely
      .updateTable('apiKey')
      .set({ expiresAt: sql`now()` })
      .where('prefix', '=', apiKey!.prefix)
      .execute();
    expect(await refusal(authenticate(key))).toMatchObject(refused);
  });

  it('is not issued with an expiry in the past', async () => {
    const { apiKeys: before } = await service.admin.listKeys({ crmId: 'keys' });
    const past = service.admin.createKey({ crmId: 'keys', expiresAt: new Date(Date.now() - 60_000) });
    expect(await refusal(past)).toMatchObject({ category: 'invalid', code: 'key.invalid_expiry' });
    expect((await service.admin.listKeys({ crmId: 'keys' })).apiKeys).toHaveLength(before.length);
  });

  it('stops working when it is revoked, with one event however often it is revoked', async () => {
    const { key, apiKey } = await service.admin.createKey({ crmId: 'keys' });
    const first = await service.admin.revokeKey({ prefix: apiKey!.prefix });
    const second = await service.admin.revokeKey({ prefix: apiKey!.prefix });
    expect(first.apiKey?.revokedAt).toBeInstanceOf(Date);
    expect(second.apiKey?.revokedAt).toEqual(first.apiKey?.revokedAt);
    expect(await refusal(authenticate(key))).toMatchObject(refused);
    expect(await recordedEvents(service.database, events.apiKeyRevoked)).toEqual([
      { crmId: 'keys', keyHash: hashOf(key) },
    ]);
    expect(await refusal(service.admin.revokeKey({ prefix: 'sk_absent' }))).toMatchObject({
      category: 'not_found',
      code: 'key.not_found',
    });
  });

  it('remembers when it was used, at most once a minute', async () => {
    const { key, apiKey } = await service.admin.createKey({ crmId: 'keys' });
    const lastUse = async () =>
      (await service.admin.listKeys({ crmId: 'keys' })).apiKeys.find(({ prefix }) => prefix === apiKey?.prefix)
        ?.lastUsedAt;
    expect(await lastUse()).toBeUndefined();
    await authenticate(key);
    await eventually(async () => expect(await lastUse()).toBeInstanceOf(Date));
    await setLastUse(apiKey!.prefix, '30 seconds');
    const recent = await lastUse();
    await authenticate(key);
    expect(await lastUse()).toEqual(recent);
    await setLastUse(apiKey!.prefix, '61 seconds');
    const older = await lastUse();
    expect(older!.getTime()).toBeLessThan(recent!.getTime());
    await authenticate(key);
    await eventually(async () => expect((await lastUse())!.getTime()).toBeGreaterThan(recent!.getTime()));
  });

  it('is listed for its own CRM, newest first, including revoked ones', async () => {
    await service.admin.createKey({ crmId: 'other' });
    const { apiKey: newest } = await service.admin.createKey({ crmId: 'other' });
    await service.admin.revokeKey({ prefix: newest!.prefix });
    const { apiKeys } = await service.admin.listKeys({ crmId: 'other' });
    expect(apiKeys).toHaveLength(2);
    expect(apiKeys[0]).toMatchObject({ prefix: newest!.prefix, revokedAt: expect.any(Date) });
    expect(apiKeys[1]?.revokedAt).toBeUndefined();
  });

  it('may do everything unless it is created with a scope', async () => {
    const { key, apiKey } = await service.admin.createKey({ crmId: 'keys' });
    expect(apiKey?.scope).toBe(KeyScope.ALL);
    expect(await authenticate(key)).toMatchObject({ scope: KeyScope.ALL, createdAt: apiKey?.createdAt });
    // As an older version inserts one.
    const older = generateKey();
    await service.database.kysely
      .insertInto('apiKey')
      .values({ crmId: 'keys', prefix: older.prefix, keyHash: older.hash })
      .execute();
    expect(await authenticate(older.key)).toMatchObject({ scope: KeyScope.ALL });
  });

  it.each([KeyScope.READ, KeyScope.BOOK])(
    'with the scope %s is authenticated only for a caller that enforces it',
    async (scope) => {
      const { key, apiKey } = await service.admin.createKey({ crmId: 'keys', scope });
      expect(apiKey?.scope).toBe(scope);
      const { apiKeys } = await service.admin.listKeys({ crmId: 'keys' });
      expect(apiKeys[0]).toMatchObject({ prefix: apiKey!.prefix, scope });
      expect(await authenticate(key, [scope])).toMatchObject({ crm: { crmId: 'keys' }, scope });
      const others = [KeyScope.READ, KeyScope.BOOK, KeyScope.ALL, KeyScope.UNSPECIFIED].filter(
        (each) => each !== scope,
      );
      for (const enforced of [[], others]) expect(await refusal(authenticate(key, enforced))).toMatchObject(refused);
    },
  );

  it('is not issued with a scope that does not exist', async () => {
    const { apiKeys: before } = await service.admin.listKeys({ crmId: 'keys' });
    for (const scope of [KeyScope.UNSPECIFIED, KeyScope.UNRECOGNIZED]) {
      const unknown = service.admin.createKey({ crmId: 'keys', scope });
      expect(await refusal(unknown)).toMatchObject({ category: 'invalid', code: 'key.invalid_scope' });
    }
    expect((await service.admin.listKeys({ crmId: 'keys' })).apiKeys).toHaveLength(before.length);
    const stored = service.database.kysely.updateTable('apiKey').set({ scope: sql`'write'` });
    await expect(stored.execute()).rejects.toThrow('api_key_scope_check');
  });

  async function setLastUse(prefix: string, ago: string): Promise<void> {
    await service.database.kysely
      .updateTable('apiKey')
      .set({ lastUsedAt: sql`now() - ${ago}::interval` })
      .where('prefix', '=', prefix)
      .execute();
  }
});
