import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

it('the pages find the provider of any CRM by its id alone, and what its CRM says of itself', async () => {
  await service.admin.createCrm({ crmId: 'plain' });
  const brand = { colour: '#2450c8', imprint: 'Acme GmbH\nBerlin', privacyUrl: 'https://acme.example/privacy' };
  await service.admin.createCrm({ crmId: 'full', name: 'Acme', language: 'en', sandbox: true, ...brand });
  const plain = await createProvider(service, 'plain');
  const full = await createProvider(service, 'full');
  const contact = { email: 'a@b.example', mobile: '+49 171', phone: '+49 30', impressum: 'Ada Lovelace' };
  await service.identity.updateProvider({
    crmId: 'full',
    reference: 'provider@crm',
    name: 'Praxis',
    timeZone: 'Europe/Zurich',
    ...contact,
  });

  expect(await service.publicProviders.getPublicProvider({ providerId: plain.id })).toEqual({
    provider: {
      name: 'Provider',
      timeZone: 'Europe/Berlin',
      crmName: 'plain',
      crmLanguage: 'de',
      sandbox: false,
    },
  });
  expect(await service.publicProviders.getPublicProvider({ providerId: full.id })).toEqual({
    provider: {
      name: 'Praxis',
      ...contact,
      timeZone: 'Europe/Zurich',
      crmName: 'Acme',
      crmLanguage: 'en',
      crmColour: brand.colour,
      crmImprint: brand.imprint,
      crmPrivacyUrl: brand.privacyUrl,
      sandbox: true,
    },
  });
});

it.each(['0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77', 'provider@crm', '', "' OR true", '\0'])(
  'no provider has the id %j',
  async (providerId) => {
    expect(await refusal(service.publicProviders.getPublicProvider({ providerId }))).toMatchObject({
      category: 'not_found',
      code: 'provider.not_found',
    });
  },
);

it('an id names one provider of all CRMs, and is looked up in an index', async () => {
  await service.admin.createCrm({ crmId: 'indexed' });
  await createProvider(service, 'indexed');
  await service.admin.createCrm({ crmId: 'copying' });
  const provider = await createProvider(service, 'copying');
  const copy = service.database.kysely
    .updateTable('provider')
    .set({ id: provider.id })
    .where('crmId', '=', 'indexed')
    .execute();
  await expect(copy).rejects.toMatchObject({ constraint: 'provider_by_id' });
  const plan = await service.database.transaction(async (tx) => {
    await sql`SET LOCAL enable_seqscan = off`.execute(tx);
    return sql<{ 'QUERY PLAN': string }>`EXPLAIN SELECT name FROM provider WHERE id = ${provider.id}`.execute(tx);
  });
  expect(plan.rows[0]!['QUERY PLAN']).toContain('provider_by_id');
});
