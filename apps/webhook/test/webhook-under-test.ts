import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { EventServiceService, WebhookServiceService } from '@scheduling/contracts/webhook/v1';
import { createDatabase, type Database } from '@scheduling/postgres';
import { type ClientOf, createClient } from '@scheduling/rpc';
import {
  createMigratedDatabase,
  longTimeout,
  newNamedKey,
  startServiceProcesses,
  startTestNats,
  testLogger,
} from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { readConfig } from '../src/config.ts';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import type { EventJson } from '../src/feed/describe-events.ts';
import { createWebhookService, type Overrides } from '../src/service.ts';

export interface WebhookUnderTest extends AsyncDisposable {
  database: Database<WebhookSchema>;
  customers: ClientOf<typeof CustomerServiceService>;
  identity: ClientOf<typeof IdentityServiceService>;
  events: ClientOf<typeof EventServiceService>;
  webhooks: ClientOf<typeof WebhookServiceService>;
  admin: ClientOf<typeof AdminServiceService>;
  /** Stops the service and starts it again. */
  restart(): Promise<void>;
}

/** Several webhooks can be due at once, and retries follow soon. */
const fastTimings: Overrides['timings'] = { pollMs: 50, retriesMs: [10, 20, 30], stopMs: 500 };

/** The webhook service in this process, and identity, customer and calendar as separate processes. */
export async function startWebhook(overrides: Overrides = {}): Promise<WebhookUnderTest> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const { identity, customer, addresses } = starting.use(
    await startServiceProcesses(['identity', 'customer', 'calendar'], nats.url),
  );
  const logger = testLogger('webhook');
  const databaseUrl = await createMigratedDatabase('webhook', migrateWebhookDatabase);
  const config = readConfig({
    LISTEN_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    ADMIN_PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: databaseUrl,
    NATS_URL: nats.url('webhook'),
    ...addresses,
    WEBHOOK_SECRET_KEYS: newNamedKey('test'),
    WEBHOOK_ALLOW_PRIVATE: 'true',
  });
  const start = () =>
    createWebhookService(config, logger, { ...overrides, timings: { ...fastTimings, ...overrides.timings } });
  let running = await start();
  starting.defer(() => running[Symbol.asyncDispose]());
  const clientsOf = (port: number) => ({
    events: createClient(EventServiceService, 'webhook', `127.0.0.1:${port}`, longTimeout),
    webhooks: createClient(WebhookServiceService, 'webhook', `127.0.0.1:${port}`, longTimeout),
  });
  const stack = {
    database: starting.use(
      createDatabase<WebhookSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
    ),
    customers: starting.use(createClient(CustomerServiceService, 'customer', customer.address, longTimeout)),
    identity: starting.use(createClient(IdentityServiceService, 'identity', identity.address, longTimeout)),
    admin: starting.use(createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout)),
    ...clientsOf(running.grpcPort),
    restart: async () => {
      await running[Symbol.asyncDispose]();
      running = await start();
      stack.events[Symbol.dispose]();
      stack.webhooks[Symbol.dispose]();
      Object.assign(stack, clientsOf(running.grpcPort));
    },
  };
  starting.defer(() => {
    stack.events[Symbol.dispose]();
    stack.webhooks[Symbol.dispose]();
  });
  const started = starting.move();
  return Object.assign(stack, { [Symbol.asyncDispose]: () => started.disposeAsync() });
}

/** A CRM with a provider. */
export interface TestCrm {
  crmId: string;
  providerReference: string;
  /** Creates customers, one after the other, and returns their references: an event each. */
  createCustomers(count: number): Promise<string[]>;
  /** The feed, from the beginning. */
  feed(): Promise<EventJson[]>;
}

export async function createCrm(stack: WebhookUnderTest): Promise<TestCrm> {
  const crmId = `crm-${randomUUID()}`;
  const [owner, account, providerReference] = [`owner@${crmId}`, `account@${crmId}`, `studio@${crmId}`];
  await stack.admin.createCrm({ crmId });
  await stack.identity.createUser({
    crmId,
    reference: owner,
    email: `${crmId}@studio.example`,
    username: crmId,
    lastName: 'Owner',
  });
  await stack.identity.createAccount({
    crmId,
    account: { ownerReference: owner, accountReference: account, branch: 'misc' },
  });
  await stack.identity.createProvider({
    crmId,
    reference: providerReference,
    ownerReference: owner,
    accountReference: account,
    name: 'Studio',
  });
  return {
    crmId,
    providerReference,
    createCustomers: async (count) => {
      const references = Array.from({ length: count }, () => `customer-${randomUUID()}`);
      for (const customerReference of references)
        await stack.customers.createCustomer({ crmId, providerReference, customerReference, userName: 'Ada' });
      return references;
    },
    feed: async () => {
      const { json } = await stack.events.listEvents({ crmId, after: 'start', limit: 1_000, types: [] });
      return JSON.parse(`[${String(json)}]`) as EventJson[];
    },
  };
}
