import { eventually } from '@scheduling/testing';
import { runWithContext } from '@scheduling/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

const asOperator = <Result>(operator: string, work: () => Promise<Result>) =>
  runWithContext({ requestId: `request-of-${operator}`, operator }, work);

describe('the audit trail', () => {
  it('says who created and changed a CRM and its keys, newest first, and never has a key', async () => {
    const { key, apiKey } = await asOperator('jane', async () => {
      await service.admin.createCrm({ crmId: 'audited' });
      await service.admin.updateCrm({ crmId: 'audited', name: 'Audited', requestsPerMinute: 10 });
      return service.admin.createKey({ crmId: 'audited' });
    });
    const { prefix } = apiKey!;
    await asOperator('joe', () => service.admin.revokeKey({ prefix }));
    await service.admin.createCrm({ crmId: 'anonymous' });
    const { entries } = await service.audit.listAuditEntries({});
    expect(entries.map(({ operator, action, target }) => [operator, action, target])).toEqual([
      ['unknown', 'crm.create', 'anonymous'],
      ['joe', 'key.revoke', `audited ${prefix}`],
      ['jane', 'key.create', `audited ${prefix} all`],
      ['jane', 'crm.update', 'audited name requestsPerMinute'],
      ['jane', 'crm.create', 'audited'],
    ]);
    expect(entries[1]).toMatchObject({ requestId: 'request-of-joe', recordedAt: expect.any(Date) as Date });
    expect(JSON.stringify(entries)).not.toContain(key);
    expect(await service.audit.listAuditEntries({ since: new Date(Date.now() + 60_000) })).toEqual({ entries: [] });
  });

  it('has no entry for what was refused, or has changed nothing', async () => {
    const count = async () => (await service.audit.listAuditEntries({})).entries.length;
    await service.admin.createCrm({ crmId: 'once' });
    const { apiKey } = await service.admin.createKey({ crmId: 'once' });
    await service.admin.revokeKey({ prefix: apiKey!.prefix });
    const before = await count();
    await refusal(service.admin.createCrm({ crmId: 'once' }));
    await refusal(service.admin.createKey({ crmId: 'once', expiresAt: new Date(0) }));
    await service.admin.revokeKey({ prefix: apiKey!.prefix });
    expect(await count()).toBe(before);
  });
});

describe('revocations', () => {
  it('are repeated on request, after a backup brought keys back', async () => {
    await service.admin.createCrm({ crmId: 'restored' });
    const keys = await Promise.all(
      ['leaked', 'replaced', 'kept'].map(() => service.admin.createKey({ crmId: 'restored' })),
    );
    const [leaked = '', replaced = ''] = keys.map(({ apiKey }) => apiKey!.prefix);
    const since = new Date(Date.now() - 60_000);
    for (const prefix of [leaked, replaced]) await service.admin.revokeKey({ prefix });
    const unsent = () =>
      service.database.kysely.selectFrom('outbox').select('id').where('sentAt', 'is', null).execute();
    await eventually(async () => expect(await unsent()).toEqual([]));
    // What a restore does to one that was revoked after the backup.
    await service.database.kysely.updateTable('apiKey').set({ revokedAt: null }).where('prefix', '=', leaked).execute();

    const { revoked, eventsReachBackTo } = await asOperator('jane', () =>
      service.admin.replayKeyRevocations({ since }),
    );
    expect(revoked).toEqual([{ crmId: 'restored', prefix: leaked }]);
    expect(eventsReachBackTo).toBeInstanceOf(Date);
    const { apiKeys } = await service.admin.listKeys({ crmId: 'restored' });
    expect(apiKeys.filter(({ revokedAt }) => revokedAt === undefined)).toHaveLength(1);
    expect((await service.audit.listAuditEntries({})).entries[0]).toMatchObject({
      operator: 'jane',
      action: 'key-revocations.replay',
      target: `${since.toISOString()} ${leaked}`,
    });

    expect(await service.admin.replayKeyRevocations({ since })).toMatchObject({ revoked: [] });
    expect(await refusal(service.admin.replayKeyRevocations({}))).toMatchObject({
      category: 'invalid',
      code: 'erasure.since_missing',
    });
  });
});
