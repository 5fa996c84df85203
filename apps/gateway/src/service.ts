// Does not import the whole library: the gateway has no database, and starts faster without that code.
import { connectBroker, events } from '@scheduling/events';
import { createRequestMetrics, stopServing, untilClientsHaveLeft } from '@scheduling/http';
import { openCredentials } from '@scheduling/rpc';
import { createLogger, createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import type { AddressInfo } from 'node:net';
import { createApp } from './app.ts';
import { createClients } from './clients.ts';
import type { Config } from './config.ts';
import { enforcedScopes } from './key-scopes.ts';
import { createKeyRing, type KeyRing } from './key-ring.ts';

export interface GatewayService extends AsyncDisposable {
  /** The port of the public API. */
  port: number;
  metricsPort: number;
}

/**
 * The cache of keys must know soon enough that revocations are not being received: a revoked key stops working within 5
 * s (interface 5).
 */
const pingMs = 1_000;

/**
 * Starts the gateway. Disposal turns readiness off, finishes requests in progress, and closes everything in reverse
 * order of the start.
 */
export async function createGatewayService(
  config: Config,
  overrides: { logger?: Logger } = {},
): Promise<GatewayService> {
  const logger = overrides.logger ?? createLogger({ service: 'gateway', level: config.logLevel });
  const metrics = createMetrics('gateway');
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'gateway', settings: config.tracing, logger }));
  // Readiness depends on no other service: while one is down, the gateway still serves what the others can answer, and
  // for the rest a 503 that says when to retry. Taking all of its replicas out of rotation at once would only make it
  // refuse connections.
  const operations = starting.use(
    await startOperationsServer({ host: config.listenHost, port: config.metricsPort, metrics, readiness: {} }),
  );
  const broker = starting.use(connectBroker({ ...config.nats, name: 'gateway', logger, metrics, pingMs }));
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const clients = starting.use(createClients(config, { credentials, metrics }));
  const keyRing = createKeyRing({
    lookUp: (keyHash) => clients.identity.authenticateKey({ keyHash, enforcedScopes }),
    hearsRevocations: () => broker.connected,
    now: Date.now,
  });
  listenForChanges(broker, keyRing);

  let draining = false;
  const { http } = await createApp({
    clients,
    keyRing,
    logger,
    recordRequest: createRequestMetrics(metrics),
    publicUrl: config.publicUrl,
    pageUrl: config.pageUrl,
    contactEmail: config.contactEmail,
    trustedProxies: config.trustedProxies,
    isDraining: () => draining,
  });
  starting.defer(() => stopServing(http));
  await http.listen({ host: config.listenHost, port: config.httpPort });
  operations.serve();
  const running = starting.move();
  return {
    port: (http.server.address() as AddressInfo).port,
    metricsPort: operations.port,
    [Symbol.asyncDispose]: async () => {
      draining = true;
      operations.drain();
      await untilClientsHaveLeft(http);
      await running.disposeAsync();
    },
  };
}

/**
 * A revoked key is evicted at once. Revocations published while NATS was down are lost, so after a reconnect everything
 * is evicted.
 */
function listenForChanges(broker: ReturnType<typeof connectBroker>, keyRing: KeyRing): void {
  broker.listen(events.apiKeyRevoked, ({ keyHash }) => keyRing.forgetKey(keyHash));
  broker.listen(events.crmChanged, ({ crmId }) => keyRing.forgetCrm(crmId));
  broker.onReconnect(() => keyRing.forgetAll());
}
