// Does not import the whole library of services: page has no database, and starts faster without that code.
import { createRequestMetrics, stopServing, untilClientsHaveLeft } from '@scheduling/http';
import { openCredentials } from '@scheduling/rpc';
import { createLogger, createMetrics, type Logger, startOperationsServer, startTracing } from '@scheduling/runtime';
import type { AddressInfo } from 'node:net';
import { createApp } from './app.ts';
import { createClients } from './clients.ts';
import type { Config } from './config.ts';

export interface PageService extends AsyncDisposable {
  /** The port of the pages. */
  port: number;
  metricsPort: number;
}

/**
 * Starts page. Disposal turns readiness off, finishes requests in progress, and closes everything in reverse order of
 * the start.
 */
export async function createPageService(config: Config, overrides: { logger?: Logger } = {}): Promise<PageService> {
  const logger = overrides.logger ?? createLogger({ service: 'page', level: config.logLevel });
  const metrics = createMetrics('page');
  await using starting = new AsyncDisposableStack();
  starting.use(await startTracing({ service: 'page', settings: config.tracing, logger }));
  // Readiness depends on no other service: a page that says when to come back is better than a refused connection.
  const operations = starting.use(
    await startOperationsServer({ host: config.listenHost, port: config.metricsPort, metrics, readiness: {} }),
  );
  const credentials = starting.use(openCredentials({ files: config.tlsFiles, logger, metrics }));
  const clients = starting.use(createClients(config, { credentials, metrics }));

  let draining = false;
  const http = await createApp({
    clients,
    logger,
    recordRequest: createRequestMetrics(metrics),
    pageUrl: config.pageUrl,
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
