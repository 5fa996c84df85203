import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type IdentityUnderTest, startIdentity } from './identity-under-test.ts';
import { createProvider } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

it('operators learn which providers of CRMs that are no sandboxes have neither an address nor a number', async () => {
  await service.admin.createCrm({ crmId: 'sandbox', sandbox: true });
  await createProvider(service, 'sandbox');
  const [second, first] = [await provider('second'), await provider('first')];
  const contacts = { email: 'desk@practice.example', phone: '+49 30 1234567', mobile: 'ask Mia' };
  for (const [name, contact] of Object.entries(contacts)) {
    await provider(name);
    await service.identity.updateProvider({ crmId: name, reference: 'provider@crm', [name]: contact });
  }
  const expected = [first, second].map(({ crmId, id }) => ({ crmId, providerId: id, reference: 'provider@crm' }));
  expect(await service.admin.listProvidersWithoutContact({})).toEqual({ providers: expected, count: 2 });

  await service.identity.updateProvider({ crmId: 'phone', reference: 'provider@crm', phone: '' });
  const { providers } = await service.admin.listProvidersWithoutContact({});
  expect(providers.map(({ crmId }) => crmId)).toEqual(['first', 'phone', 'second']);
});

it('and of very many the first, and how many there are', async () => {
  const { crmId } = await provider('many');
  const { count } = await service.admin.listProvidersWithoutContact({});
  await sql`
    INSERT INTO provider (crm_id, reference, owner_id, account_id, name, time_zone)
    SELECT crm_id, 'p' || number, owner_id, account_id, name, time_zone
      FROM provider, generate_series(1, 1000) AS number
     WHERE crm_id = ${crmId}`.execute(service.database.kysely);
  const many = await service.admin.listProvidersWithoutContact({});
  expect([many.providers.length, many.count]).toEqual([1_000, count + 1_000]);
});

async function provider(crmId: string): Promise<{ crmId: string; id: string }> {
  await service.admin.createCrm({ crmId });
  const { id } = await createProvider(service, crmId);
  return { crmId, id };
}
