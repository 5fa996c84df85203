import { AdminServiceService, type CreateCrmRequest, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { longTimeout, type ServiceProcess, startServiceProcesses, type TestNats } from '@scheduling/testing';

/** The services that calendar calls. */
export interface Neighbours extends AsyncDisposable {
  identity: ServiceProcess;
  customer: ServiceProcess;
}

/** @param postgresUrl for a global setup, where inject() is not available */
export async function startNeighbours(natsUrl: TestNats['url'], postgresUrl?: string): Promise<Neighbours> {
  await using starting = new AsyncDisposableStack();
  const services = starting.use(await startServiceProcesses(['identity', 'customer'], natsUrl, { postgresUrl }));
  await setUpProviders(services.identity);
  starting.move();
  return services;
}

/**
 * Providers p1 and p2 of CRM one, p1 of CRM two and of two sandboxes, and one in each of some other zones, whose
 * reference is the zone.
 */
async function setUpProviders(identity: ServiceProcess): Promise<void> {
  await createCrm(identity, { crmId: 'one' }, ['p1', 'p2', ...otherZones]);
  await createCrm(identity, { crmId: 'two' }, ['p1']);
  await createCrm(identity, { crmId: 'sandbox', sandbox: true }, ['p1']);
  await createCrm(identity, { crmId: 'other-sandbox', sandbox: true }, ['p1']);
}

/** Creates a CRM with these providers. */
export async function createCrm(
  { address, adminAddress }: ServiceProcess,
  settings: CreateCrmRequest,
  providers: string[],
): Promise<void> {
  using admin = createClient(AdminServiceService, 'identity', adminAddress, longTimeout);
  using identity = createClient(IdentityServiceService, 'identity', address, longTimeout);
  const { crmId } = settings;
  await admin.createCrm(settings);
  await identity.createUser({
    crmId,
    reference: 'owner@crm',
    email: `owner@${crmId}.example`,
    username: `owner-${crmId}`,
    lastName: 'Owner',
  });
  await identity.createAccount({
    crmId,
    account: { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' },
  });
  for (const reference of providers) {
    const timeZone = otherZones.find((zone) => zone === reference);
    await identity.createProvider({
      crmId,
      reference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: reference,
      timeZone,
    });
  }
}

const otherZones = ['Asia/Kolkata', 'Australia/Lord_Howe', 'America/Santiago', 'Pacific/Apia'];
