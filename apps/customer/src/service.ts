import { CustomerRemovalServiceService } from '@scheduling/contracts/calendar/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { connectBroker, hostConsumerService, hostDeadLetterService, startConsumers, startRelay } from '@scheduling/messaging';
import { createDatabase, startKeySweeper, translatePostgresError } from '@scheduling/postgres';
import { createClient, openCredentials, startRpcServer } from '@scheduling/rpc';
import { createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { CustomerSchema } from './db/schema.ts';
import { startErasureDriver } from './erasure/drive-erasures.ts';
import { createErasureMetrics } from './erasure/erasure-metrics.ts';
import { hostCustomerService, hostErasureService } from './grpc.ts';
import { customerSubscriptions } from './subscriptions.ts';

export interface CustomerService extends AsyncDisposable {
  grpcPort: number;
  metricsPort: number;
}

/** Puts the service together; tests and the process use the same. Disposal drains first and closes the connections last. */
export async function createCustomerService(config: Config, logger: Logger): Promise<CustomerService> {
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'customer', endpoint: config.otlpEndpoint, logger }));
  const metrics = createMetrics('customer');
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const database = starting.use(
    createDatabase<CustomerSchema>({ url: config.databaseUrl, applicationName: 'customer', migrations: migrationSets, logger, metrics }),
  );
  createErasureMetrics(metrics, database);
  const operations = starting.use(
    await startOperationsServer({
      host: config.listenHost,
      port: config.metricsPort,
      metrics,
      // NATS is not asked: without it events wait in the outbox and the service goes on.
      readiness: { postgres: database.ping, schema: database.checkSchema },
    }),
  );
  const broker = starting.use(connectBroker({ url: config.natsUrl, name: 'customer', logger, streamReplicas: config.natsStreamReplicas, metrics }));
  const identity = starting.use(createClient(IdentityServiceService, 'identity', config.identityAddress, { credentials, metrics }));
  const removals = starting.use(createClient(CustomerRemovalServiceService, 'calendar', config.calendarAddress, { credentials, metrics }));
  const dependencies = { database, identity, removals };
  const subscriptions = customerSubscriptions();
  starting.use(startKeySweeper({ database, logger }));
  starting.use(startRelay({ service: 'customer', database, broker, logger, metrics }));
  starting.use(startConsumers({ service: 'customer', subscriptions, database, broker, logger, metrics }));
  starting.use(startErasureDriver(dependencies, logger));

  const rpcServer = starting.use(
    await startRpcServer({
      host: config.listenHost,
      port: config.grpcPort,
      credentials,
      services: [
        hostCustomerService(dependencies),
        hostErasureService(dependencies, broker),
        hostDeadLetterService({ database, broker }),
        hostConsumerService({ service: 'customer', subscriptions }),
      ],
      logger,
      translateError: translatePostgresError,
      metrics,
    }),
  );
  operations.serve();
  starting.defer(() => operations.drain());

  const started = starting.move();
  return { grpcPort: rpcServer.port, metricsPort: operations.port, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
