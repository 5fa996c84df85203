import { ParticipationServiceService } from '@scheduling/contracts/calendar/v1';
import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { connectBroker, hostConsumerService, hostDeadLetterService, startConsumers, startRelay } from '@scheduling/messaging';
import { createDatabase, translatePostgresError } from '@scheduling/postgres';
import { createClient, openCredentials, startRpcServer } from '@scheduling/rpc';
import { createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { NotificationSchema } from './db/schema.ts';
import type { NotificationDependencies } from './dependencies.ts';
import { hostMailService } from './grpc.ts';
import { startDelivery } from './mail/deliver-mails.ts';
import { startForgettingFinishedMails } from './mail/forget-finished-mails.ts';
import { registerMailMetrics } from './mail/mail-metrics.ts';
import { type DeliveryTimings, defaultTimings } from './mail/timings.ts';
import { notificationSubscriptions } from './subscriptions.ts';

export interface NotificationService extends AsyncDisposable {
  grpcPort: number;
  metricsPort: number;
}

export interface Overrides {
  timings?: Partial<DeliveryTimings>;
  /** After so many failures an event is put aside. */
  maxAttempts?: number;
}

/** Puts the service together; tests and the process use the same. Disposal drains first and closes the connections last. */
export async function createNotificationService(config: Config, logger: Logger, overrides: Overrides = {}): Promise<NotificationService> {
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'notification', endpoint: config.otlpEndpoint, logger }));
  const metrics = createMetrics('notification');
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const database = starting.use(
    createDatabase<NotificationSchema>({ url: config.databaseUrl, applicationName: 'notification', migrations: migrationSets, logger, metrics }),
  );
  const operations = starting.use(
    await startOperationsServer({
      host: config.listenHost,
      port: config.metricsPort,
      metrics,
      // Neither NATS nor SMTP is asked: without them mails wait and the service goes on.
      readiness: { postgres: database.ping, schema: database.checkSchema },
    }),
  );
  const broker = starting.use(connectBroker({ url: config.natsUrl, name: 'notification', logger, streamReplicas: config.natsStreamReplicas, metrics }));
  const dependencies: NotificationDependencies = {
    database,
    identity: starting.use(createClient(IdentityServiceService, 'identity', config.identityAddress, { credentials, metrics })),
    participations: starting.use(createClient(ParticipationServiceService, 'calendar', config.calendarAddress, { credentials, metrics })),
    erasures: starting.use(createClient(ErasureServiceService, 'customer', config.customerAddress, { credentials, metrics })),
    senderAddress: config.senderAddress,
    publicUrl: config.publicUrl,
  };
  starting.use(startForgettingFinishedMails({ database, logger }));
  starting.use(
    startDelivery({
      database,
      smtpUrl: config.smtpUrl,
      connections: config.smtpConnections,
      timings: { ...defaultTimings, ...overrides.timings },
      onOutcome: registerMailMetrics(metrics, database),
      logger,
    }),
  );
  starting.use(startRelay({ service: 'notification', database, broker, logger, metrics }));
  const subscriptions = notificationSubscriptions(dependencies);
  starting.use(
    startConsumers({
      service: 'notification',
      subscriptions,
      database,
      broker,
      logger,
      maxAttempts: overrides.maxAttempts,
      metrics,
    }),
  );

  const rpcServer = starting.use(
    await startRpcServer({
      host: config.listenHost,
      port: config.grpcPort,
      credentials,
      services: [hostMailService(database), hostDeadLetterService({ database, broker }), hostConsumerService({ service: 'notification', subscriptions })],
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
