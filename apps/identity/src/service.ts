import { connectBroker, startRelay } from '@scheduling/messaging';
import { createDatabase, startKeySweeper, translatePostgresError } from '@scheduling/postgres';
import { openCredentials, startRpcServer } from '@scheduling/rpc';
import { createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import { hostAdminService } from './admin-grpc.ts';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { IdentitySchema } from './db/schema.ts';
import { hostIdentityService } from './grpc.ts';

export interface IdentityService extends AsyncDisposable {
  grpcPort: number;
  metricsPort: number;
}

/** Puts the service together; tests and the process use the same. Disposal drains first and closes the connections last. */
export async function createIdentityService(config: Config, logger: Logger): Promise<IdentityService> {
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'identity', endpoint: config.otlpEndpoint, logger }));
  const metrics = createMetrics('identity');
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const database = starting.use(
    createDatabase<IdentitySchema>({ url: config.databaseUrl, applicationName: 'identity', migrations: migrationSets, logger, metrics }),
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
  const broker = starting.use(connectBroker({ url: config.natsUrl, name: 'identity', logger, streamReplicas: config.natsStreamReplicas, metrics }));
  starting.use(startKeySweeper({ database, logger }));
  starting.use(startRelay({ service: 'identity', database, broker, logger, metrics }));

  const dependencies = { database, logger };
  const rpcServer = starting.use(
    await startRpcServer({
      host: config.listenHost,
      port: config.grpcPort,
      credentials,
      services: [hostIdentityService(dependencies), hostAdminService(dependencies)],
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
