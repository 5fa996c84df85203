import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { connectBroker, hostConsumerService, hostDeadLetterService, startConsumers, startRelay } from '@scheduling/messaging';
import { createDatabase, startKeySweeper, translatePostgresError } from '@scheduling/postgres';
import { createClient, openCredentials, startRpcServer } from '@scheduling/rpc';
import { createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { CalendarSchema } from './db/schema.ts';
import type { CalendarDependencies } from './dependencies.ts';
import { hostCalendarServices } from './grpc.ts';
import { createBookingMetrics } from './participation/booking-metrics.ts';
import { startRetention } from './participation/start-retention.ts';
import { startReservationSweeper } from './participation/start-reservation-sweeper.ts';
import { calendarSubscriptions } from './subscriptions.ts';

export interface CalendarService extends AsyncDisposable {
  grpcPort: number;
  metricsPort: number;
}

/** Puts the service together; tests and the process use the same. Disposal drains first and closes the connections last. */
export async function createCalendarService(config: Config, logger: Logger): Promise<CalendarService> {
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'calendar', endpoint: config.otlpEndpoint, logger }));
  const metrics = createMetrics('calendar');
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const database = starting.use(
    createDatabase<CalendarSchema>({ url: config.databaseUrl, applicationName: 'calendar', migrations: migrationSets, logger, metrics }),
  );
  const operations = starting.use(
    await startOperationsServer({
      host: config.listenHost,
      port: config.metricsPort,
      metrics,
      // NATS is not asked: without it events wait in the outbox and the service goes on.
      readiness: { postgres: database.ping, schema: database.checkSchema },
    }),
  );
  const broker = starting.use(connectBroker({ url: config.natsUrl, name: 'calendar', logger, streamReplicas: config.natsStreamReplicas, metrics }));
  const identity = starting.use(createClient(IdentityServiceService, 'identity', config.identityAddress, { credentials, metrics }));
  const customers = starting.use(createClient(CustomerServiceService, 'customer', config.customerAddress, { credentials, metrics }));
  const bookings = createBookingMetrics(metrics);
  const dependencies: CalendarDependencies = { database, identity, customers, archiveAfterDays: config.archiveAfterDays, bookings };
  const subscriptions = calendarSubscriptions(dependencies);
  starting.use(startKeySweeper({ database, logger }));
  starting.use(startRelay({ service: 'calendar', database, broker, logger, metrics }));
  starting.use(startConsumers({ service: 'calendar', subscriptions, database, broker, logger, metrics }));
  if (config.anonymiseAfterDays > 0) starting.use(startRetention({ database, anonymiseAfterDays: config.anonymiseAfterDays, logger }));
  if (config.reservationSweeper === 'on') starting.use(startReservationSweeper({ database, bookings, logger }));

  const rpcServer = starting.use(
    await startRpcServer({
      host: config.listenHost,
      port: config.grpcPort,
      credentials,
      services: [...hostCalendarServices(dependencies), hostDeadLetterService({ database, broker }), hostConsumerService({ service: 'calendar', subscriptions })],
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
