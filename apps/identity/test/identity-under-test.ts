import {
  AdminServiceService,
  IdentityServiceService,
  PublicProviderServiceService,
} from '@scheduling/contracts/identity/v1';
import { AuditServiceService } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import type { EventDefinition } from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { type ClientOf, createClient } from '@scheduling/rpc';
import { countDeadlocks, createMigratedDatabase, longTimeout, startTestNats, testLogger } from '@scheduling/testing';
import { readConfig } from '../src/config.ts';
import { migrateIdentityDatabase } from '../src/db/migrate.ts';
import type { IdentitySchema } from '../src/db/schema.ts';
import { createIdentityService } from '../src/service.ts';

export interface IdentityUnderTest extends AsyncDisposable {
  identity: ClientOf<typeof IdentityServiceService>;
  publicProviders: ClientOf<typeof PublicProviderServiceService>;
  admin: ClientOf<typeof AdminServiceService>;
  audit: ClientOf<typeof AuditServiceService>;
  /** A second replica on the same database. */
  otherReplica: ClientOf<typeof IdentityServiceService>;
  /** For inspecting what no RPC returns, and for advancing time. */
  database: Database<IdentitySchema>;
  /** The number of deadlocks in the database. Stops everything. */
  countDeadlocks(): Promise<number>;
}

/** Two replicas of the service as they run in production, on their own servers. */
export async function startIdentity(): Promise<IdentityUnderTest> {
  await using starting = new AsyncDisposableStack();
  const logger = testLogger('identity-test');
  const nats = starting.use(await startTestNats());
  const url = await createMigratedDatabase('identity', migrateIdentityDatabase);
  const config = readConfig({
    LISTEN_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    ADMIN_PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: url,
    NATS_URL: nats.url('identity'),
  });
  const first = starting.use(await createIdentityService(config, logger));
  const second = starting.use(await createIdentityService(config, logger));
  const database = starting.use(
    createDatabase<IdentitySchema>({ url, applicationName: 'test', logger, ...longTimeout }),
  );
  const identity = starting.use(
    createClient(IdentityServiceService, 'identity', `127.0.0.1:${first.grpcPort}`, longTimeout),
  );
  const otherReplica = starting.use(
    createClient(IdentityServiceService, 'identity', `127.0.0.1:${second.grpcPort}`, longTimeout),
  );
  const publicProviders = starting.use(
    createClient(PublicProviderServiceService, 'identity', `127.0.0.1:${first.grpcPort}`, longTimeout),
  );
  const admin = starting.use(
    createClient(AdminServiceService, 'identity', `127.0.0.1:${first.adminPort}`, longTimeout),
  );
  const audit = starting.use(
    createClient(AuditServiceService, 'identity', `127.0.0.1:${first.adminPort}`, longTimeout),
  );
  const started = starting.move();
  return {
    identity,
    otherReplica,
    publicProviders,
    admin,
    audit,
    database,
    countDeadlocks: async () => {
      await started.disposeAsync();
      return countDeadlocks(url);
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** The domain error that a call is rejected with, without its stack. */
export async function refusal(
  call: Promise<unknown>,
): Promise<Pick<DomainError, 'category' | 'code' | 'message' | 'errors' | 'retryAfterSeconds'>> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { category, code, message, errors, retryAfterSeconds } = error;
    return { category, code, message, errors, retryAfterSeconds };
  }
  throw new Error('the call was not refused');
}

/** The data of the recorded events of one kind, oldest first. */
export async function recordedEvents<Data>(
  database: Database<IdentitySchema>,
  definition: EventDefinition<Data>,
): Promise<Data[]> {
  const rows = await database.kysely
    .selectFrom('outbox')
    .select('data')
    .where('subject', '=', definition.subject)
    .orderBy('id')
    .execute();
  return rows.map(({ data }) => definition.fromJson(data!));
}
