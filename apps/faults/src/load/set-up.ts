import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { host } from '@scheduling/stack';
import type { System } from '../system/start-system.ts';
import { type ClientOptions, createCrmClient, type CrmClient, path, type Request } from './client.ts';
import type { Journal } from './journal.ts';
import type { Provider, Tenant } from './model.ts';
import { createPageClient } from './page-client.ts';
import type { ProbedProvider } from './probe.ts';
import type { PassingCrm } from './short-lived-providers.ts';
import { resources } from './slots.ts';

/** Words that no reference, name or text contains by chance. */
const marks = ['Aquamarin', 'Bergkristall'] as const;
const providersPerTenant = 2;

type Crm = Pick<Tenant, 'client' | 'mark'>;

/** Two CRMs whose references are the same, each with providers. */
export async function setUpTenants(system: System, journal: Journal, ended: AbortSignal): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (const [index, mark] of marks.entries()) {
    const crmId = `crm-${index}`;
    const foreignMark = marks[1 - index]!;
    const client = await setUpClient(system, { crmId, foreignMark, journal, ended });
    let made = 0;
    const tenant: Tenant = {
      crmId,
      client,
      pages: createPageClient({ network: `10.${index}`, foreignMark, journal, ended }),
      mark,
      providers: [],
      users: [],
      newReference: (kind) => `${kind}-${(made += 1)}@load`,
    };
    for (let number = 0; number < providersPerTenant; number += 1)
      tenant.providers.push({ ...(await createProvider(tenant, number)), ...nothingMade(tenant) });
    tenants.push(tenant);
  }
  return tenants;
}

/** A CRM of its own, with one provider, for the probe. */
export async function setUpProbe(system: System, journal: Journal, ended: AbortSignal): Promise<ProbedProvider> {
  const client = await setUpClient(system, { crmId: 'crm-probe', foreignMark: marks[0], journal, ended });
  const { at } = await createProvider({ client, mark: 'Citrin' }, 0);
  return { client, at };
}

/** A sandbox, whose providers come and go. */
export async function setUpPassingCrm(system: System, journal: Journal, ended: AbortSignal): Promise<PassingCrm> {
  const crmId = 'crm-passing';
  const mark = 'Smaragd';
  const options = { crmId, foreignMark: marks[0], journal, ended, sandbox: true };
  const client = await setUpClient(system, options);
  const owner = await createOwner({ client, mark }, 0);
  return { crmId, client, mark, owner, system, journal, ended, made: 0, webhooks: 0, references: new Map() };
}

function nothingMade(tenant: Tenant): Omit<Provider, 'reference' | 'at'> {
  return {
    tenant,
    customers: [],
    appointments: [],
    participations: [],
    timeslots: [],
    hours: [],
    blocks: [],
    series: [],
  };
}

async function setUpClient(
  { groups, gatewayUrl }: System,
  options: Pick<ClientOptions, 'crmId' | 'foreignMark' | 'journal' | 'ended'> & { sandbox?: boolean },
): Promise<CrmClient> {
  const { crmId, sandbox = false } = options;
  const { admin } = groups.identity.ready[0]!.ports;
  using administration = createClient(AdminServiceService, 'identity', `${host}:${admin}`);
  await administration.createCrm({ crmId, requestsPerMinute: 0, language: 'en', timeZone: 'Etc/UTC', sandbox });
  const { key } = await administration.createKey({ crmId });
  return createCrmClient({ gatewayUrl, key, ...options });
}

async function createProvider(tenant: Crm, number: number): Promise<Pick<Provider, 'reference' | 'at'>> {
  const { mark } = tenant;
  const [account, reference] = ['account', 'provider'].map((kind) => `${kind}-${number}@load`) as [string, string];
  const owner = await createOwner(tenant, number);
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
  return { reference, at };
}

async function createOwner(tenant: Crm, number: number): Promise<string> {
  const { mark } = tenant;
  const reference = `owner-${number}@load`;
  const name = `${mark}-${number}`.toLowerCase();
  const email = `${name}@${mark}.example`;
  await send(tenant, 'POST', '/user', { reference, email, username: name, lastName: mark });
  return reference;
}

async function send({ client }: Crm, method: Request['method'], to: string, body: unknown): Promise<void> {
  const answer = await client.send({ method, path: to, body });
  if (answer === undefined || answer.status > 299)
    throw new Error(`the set-up failed: ${to} was answered with ${answer?.status} ${answer?.text}`);
}
