import { CustomerCopyServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { createDatabase, type Database } from '@scheduling/postgres';
import { type ClientOf, createClient } from '@scheduling/rpc';
import {
  createMigratedDatabase,
  freePort,
  longTimeout,
  type ServiceProcess,
  startServiceProcesses,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { readConfig } from '../src/config.ts';
import { migrateCustomerDatabase } from '../src/db/migrate.ts';
import type { CustomerSchema } from '../src/db/schema.ts';
import { createCustomerService } from '../src/service.ts';

export interface CustomerUnderTest extends AsyncDisposable {
  customers: ClientOf<typeof CustomerServiceService>;
  identity: ClientOf<typeof IdentityServiceService>;
  /** From then on, identity does not respond. */
  stopIdentity(): Promise<void>;
  /** For inspecting what no RPC returns. */
  database: Database<CustomerSchema>;
}

/** The service as it runs in production, on its own servers, with identity as a process. Calendar does not respond. */
export async function startCustomer(): Promise<CustomerUnderTest> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const services = starting.use(await startServiceProcesses(['identity'], nats.url));
  const customer = starting.use(await startCustomerBeside(services, nats, '0'));
  const started = starting.move();
  return { ...customer, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

export interface CustomerBesideCalendar extends CustomerUnderTest {
  copies: ClientOf<typeof CustomerCopyServiceService>;
  calendarDatabaseUrl: string;
}

/** The same with calendar as a process. */
export async function startCustomerWithCalendar(): Promise<CustomerBesideCalendar> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const port = String(await freePort());
  const services = starting.use(
    await startServiceProcesses(['identity', 'calendar'], nats.url, {
      environment: { CUSTOMER_ADDRESS: `127.0.0.1:${port}` },
    }),
  );
  const customer = starting.use(await startCustomerBeside(services, nats, port));
  const copies = starting.use(
    createClient(CustomerCopyServiceService, 'calendar', services.calendar.address, longTimeout),
  );
  const started = starting.move();
  return {
    ...customer,
    copies,
    calendarDatabaseUrl: services.calendar.databaseUrl,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

interface Neighbours {
  identity: ServiceProcess;
  addresses: Record<string, string>;
}

async function startCustomerBeside(services: Neighbours, nats: TestNats, port: string): Promise<CustomerUnderTest> {
  await using starting = new AsyncDisposableStack();
  const logger = testLogger('customer');
  await setUpProviders(services.identity);

  const databaseUrl = await createMigratedDatabase('customer', migrateCustomerDatabase);
  const config = readConfig({
    LISTEN_HOST: '127.0.0.1',
    GRPC_PORT: port,
    ADMIN_PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: databaseUrl,
    NATS_URL: nats.url('customer'),
    ...services.addresses,
  });
  const service = starting.use(await createCustomerService(config, logger));
  const customers = starting.use(
    createClient(CustomerServiceService, 'customer', `127.0.0.1:${service.grpcPort}`, longTimeout),
  );
  const identity = starting.use(
    createClient(IdentityServiceService, 'identity', services.identity.address, longTimeout),
  );
  const database = starting.use(
    createDatabase<CustomerSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
  );
  const started = starting.move();
  const stopIdentity = async () => services.identity[Symbol.asyncDispose]();
  return { customers, identity, stopIdentity, database, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Providers p1 and p2 of CRM one, p1 of CRM two. */
async function setUpProviders({ address, adminAddress }: ServiceProcess): Promise<void> {
  using admin = createClient(AdminServiceService, 'identity', adminAddress, longTimeout);
  using identity = createClient(IdentityServiceService, 'identity', address, longTimeout);
  for (const crmId of ['one', 'two']) {
    await admin.createCrm({ crmId });
    const owner = {
      reference: 'owner@crm',
      email: `owner@${crmId}.example`,
      username: `owner-${crmId}`,
      lastName: 'Owner',
    };
    await identity.createUser({ crmId, ...owner });
    const account = { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' };
    await identity.createAccount({ crmId, account });
    for (const reference of crmId === 'one' ? ['p1', 'p2'] : ['p1']) {
      await identity.createProvider({
        crmId,
        reference,
        ownerReference: 'owner@crm',
        accountReference: 'account@crm',
        name: reference,
      });
    }
  }
}
