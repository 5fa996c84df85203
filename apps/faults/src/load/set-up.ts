import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { host } from '@scheduling/stack';
import type { System } from '../system/start-system.ts';
import { createCrmClient, path } from './client.ts';
import type { Journal } from './journal.ts';
import type { Provider, Tenant } from './model.ts';

/** Words that no reference, name or text contains by chance. */
const marks = ['Aquamarin', 'Bergkristall'] as const;
const providersPerTenant = 2;

/** Two CRMs whose references are the same, each with providers. */
export async function setUpTenants(system: System, journal: Journal, ended: AbortSignal): Promise<Tenant[]> {
  const { admin } = system.groups.identity.ready[0]!.ports;
  using client = createClient(AdminServiceService, 'identity', `${host}:${admin}`);
  const tenants: Tenant[] = [];
  for (const [index, mark] of marks.entries()) {
    const crmId = `crm-${index}`;
    await client.createCrm({ crmId, requestsPerMinute: 0, language: 'en', timeZone: 'Etc/UTC' });
    const { key } = await client.createKey({ crmId });
    const foreignMark = marks[1 - index]!;
    let made = 0;
    const tenant: Tenant = {
      crmId,
      client: createCrmClient({ gatewayUrl: system.gatewayUrl, crmId, key, foreignMark, journal, ended }),
      mark,
      providers: [],
      users: [],
      newReference: (kind) => `${kind}-${(made += 1)}@load`,
    };
    for (let number = 0; number < providersPerTenant; number += 1)
      tenant.providers.push(await createProvider(tenant, number));
    tenants.push(tenant);
  }
  return tenants;
}

async function createProvider(tenant: Tenant, number: number): Promise<Provider> {
  const { mark } = tenant;
  const [owner, account, reference] = ['owner', 'account', 'provider'].map((kind) => `${kind}-${number}@load`) as [
    string,
    string,
    string,
  ];
  const name = `${mark}-${number}`.toLowerCase();
  await create(tenant, '/user', { reference: owner, email: `${name}@${mark}.example`, username: name, lastName: mark });
  await create(tenant, '/account', { ownerReference: owner, accountReference: account, branch: 'misc' });
  await create(tenant, '/provider', {
    reference,
    ownerReference: owner,
    accountReference: account,
    name: `Practice ${mark}`,
  });
  return {
    tenant,
    reference,
    at: path`/provider/${reference}`,
    customers: [],
    appointments: [],
    participations: [],
    timeslots: [],
    series: [],
  };
}

async function create({ client }: Tenant, to: string, body: unknown): Promise<void> {
  const answer = await client.send({ method: 'POST', path: to, body });
  if (answer?.status !== 201)
    throw new Error(`the set-up failed: ${to} was answered with ${answer?.status} ${answer?.text}`);
}
