import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { host } from '@scheduling/stack';
import type { System } from '../system/start-system.ts';
import { createCrmClient, path, type Request } from './client.ts';
import type { Journal } from './journal.ts';
import type { Provider, Tenant } from './model.ts';
import { createPageClient } from './page-client.ts';
import { resources } from './slots.ts';

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
      pages: createPageClient({ network: `10.${index}`, foreignMark, journal, ended }),
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
  await send(tenant, 'POST', '/user', {
    reference: owner,
    email: `${name}@${mark}.example`,
    username: name,
    lastName: mark,
  });
  await send(tenant, 'POST', '/account', { ownerReference: owner, accountReference: account, branch: 'misc' });
  await send(tenant, 'POST', '/provider', {
    reference,
    ownerReference: owner,
    accountReference: account,
    name: `Practice ${mark}`,
  });
  const at = path`/provider/${reference}`;
  await send(tenant, 'PUT', `${at}/booking-rules`, {
    selfService: true,
    offers: [
      {
        productReference: 'product@load',
        name: `${mark} product`,
        duration: 30,
        resources: resources.map((resourceReference) => ({ resourceReference, name: `${mark} chair` })),
      },
    ],
  });
  return {
    tenant,
    reference,
    at,
    customers: [],
    appointments: [],
    participations: [],
    timeslots: [],
    hours: [],
    blocks: [],
    series: [],
  };
}

async function send({ client }: Tenant, method: Request['method'], to: string, body: unknown): Promise<void> {
  const answer = await client.send({ method, path: to, body });
  if (answer === undefined || answer.status > 299)
    throw new Error(`the set-up failed: ${to} was answered with ${answer?.status} ${answer?.text}`);
}
