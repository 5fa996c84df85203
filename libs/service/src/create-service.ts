import { type Broker, connectBroker } from '@scheduling/events';
import {
  messagingCleanUps,
  type MessagingSchema,
  startConsumers,
  startRelay,
  type Subscription,
} from '@scheduling/messaging';
import {
  type CleanUp,
  createDatabase,
  type Database,
  idempotencyCleanUp,
  type IdempotencySchema,
  maxConnections,
  measureArchive,
  type MigrationSet,
  startCleanUps,
  startGrowthAnalysis,
  translatePostgresError,
} from '@scheduling/postgres';
import {
  callWeight,
  createClient,
  type Definition,
  type HostedService,
  openCredentials,
  type RpcClient,
} from '@scheduling/rpc';
import {
  createMetrics,
  type DatabaseService,
  FairQueue,
  type Logger,
  type Metrics,
  startOperationsServer,
  startTracing,
} from '@scheduling/runtime';
import { hostAuditService } from './host-audit-service.ts';
import { hostConsumerService } from './host-consumer-service.ts';
import { hostDatabaseService } from './host-database-service.ts';
import { hostDeadLetterService } from './host-dead-letter-service.ts';
import { startRpcServers } from './start-rpc-servers.ts';
import type { ServiceSettings } from './settings.ts';

/** The tables that every service has. */
type CommonSchema = IdempotencySchema & MessagingSchema;

const commonCleanUps: CleanUp<CommonSchema>[] = [idempotencyCleanUp, ...messagingCleanUps];

export interface RunningService extends AsyncDisposable {
  grpcPort: number;
  adminPort: number;
  metricsPort: number;
}

/** What a service is built on. */
export interface Foundation<Schema> {
  database: Database<Schema>;
  broker: Broker;
  metrics: Metrics;
  /**
   * Adds background work, which ends at the stop together with the other work, while calls in progress are answered,
   * and before the connections are closed.
   */
  use<T extends AsyncDisposable>(work: T): T;
  /** A client of another service; see `createClient`. */
  connect<D extends Definition>(definition: D, service: string, address: string): RpcClient<D>;
}

/** What a service adds to the common parts. */
export interface Composition<Schema> {
  /** The RPCs for other services. */
  hosted: HostedService[];
  /** Its own RPCs for operators, who call them on a separate port. */
  operators?: HostedService[];
  /** The events that it consumes; operators can then also call the RPCs about its consumers and dead letters. */
  subscriptions?: Subscription<Schema>[];
  /** Passed to {@link startConsumers}. */
  maxAttempts?: number;
  /** What it removes by itself, besides old idempotency keys and what is left of events. */
  cleanUps?: readonly CleanUp<Schema>[];
}

export interface ServiceOptions<Schema> {
  name: DatabaseService;
  settings: ServiceSettings;
  migrations: readonly MigrationSet[];
  logger: Logger;
  compose: (foundation: Foundation<Schema>) => Composition<Schema>;
}

/**
 * As many calls as there are connections to the database, and half of them for one CRM: the others always find a free
 * one.
 */
const callLimits = { capacity: maxConnections * callWeight, maxWaiting: 1_000, maxWaitMs: 1_500 };

/**
 * Starts a service: its database, the relay of its outbox, its consumers, its RPCs, and `/readyz` once it can answer.
 * Tests use it like the process does. Disposal ends all work at once, because each part may take almost as long as the
 * whole stop: calls, consumers, deliveries. The relay ends after them, so that their events do not wait meanwhile, and
 * the connections are closed last. Readiness does not depend on NATS: without it events wait in the outbox, and the
 * service keeps working. Without Postgres it is ready for half a minute, and answers 503.
 */
export async function createService<Schema extends CommonSchema>(
  options: ServiceOptions<Schema>,
): Promise<RunningService> {
  const { name, settings, migrations, logger } = options;
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: name, settings: settings.tracing, logger }));
  const metrics = createMetrics(name);
  const credentials = starting.use(openCredentials({ files: settings.tlsFiles, logger, metrics }));
  const database = starting.use(
    createDatabase<Schema>({ url: settings.databaseUrl, applicationName: name, migrations, logger, metrics }),
  );
  measureArchive(database, metrics);
  const operations = starting.use(
    await startOperationsServer({
      host: settings.listenHost,
      port: settings.metricsPort,
      metrics,
      readiness: { schema: database.checkSchema },
      dependencies: { postgres: database.ping },
    }),
  );
  const broker = starting.use(
    connectBroker({ ...settings.nats, name, logger, streamReplicas: settings.natsStreamReplicas, metrics }),
  );
  const work: AsyncDisposable[] = [];
  const clients = starting.use(new AsyncDisposableStack());
  starting.use(startRelay({ service: name, database, broker, logger, metrics }));
  starting.defer(() => disposeTogether(work));
  const use = <T extends AsyncDisposable>(part: T): T => {
    work.push(part);
    return part;
  };
  const {
    hosted,
    operators = [],
    subscriptions,
    maxAttempts,
    cleanUps = [],
  } = options.compose({
    database,
    broker,
    metrics,
    use,
    connect: (definition, service, address) =>
      clients.use(createClient(definition, service, address, { credentials, metrics })),
  });
  use(startCleanUps({ database, logger, cleanUps: [...(commonCleanUps as CleanUp<Schema>[]), ...cleanUps] }));
  use(startGrowthAnalysis({ database, logger }));
  const operatorServices = [
    ...operators,
    hostDatabaseService({ url: settings.databaseUrl, migrations, database }),
    hostAuditService({ database }),
  ];
  if (subscriptions) {
    use(startConsumers({ service: name, subscriptions, database, broker, logger, metrics, maxAttempts }));
    operatorServices.push(
      hostDeadLetterService({ service: name, subscriptions, database }),
      hostConsumerService({ service: name, subscriptions }),
    );
  }
  const common = { settings, credentials, logger, translateError: translatePostgresError, metrics };
  const turns = new FairQueue(callLimits);
  const { grpcPort, adminPort } = use(
    await startRpcServers({ services: hosted, operatorServices, turns, ready: database.requireCurrent, ...common }),
  );
  operations.serve();
  starting.defer(() => operations.drain());

  const started = starting.move();
  return { grpcPort, adminPort, metricsPort: operations.port, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function disposeTogether(parts: AsyncDisposable[]): Promise<void> {
  const results = await Promise.allSettled(parts.map((part) => part[Symbol.asyncDispose]()));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0) throw new AggregateError(failures, 'some of the work of the service could not be ended');
}
