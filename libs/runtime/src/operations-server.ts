import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { measureAtScrape } from './measure-at-scrape.ts';
import type { Metrics } from './metrics.ts';
import { within } from './within.ts';

/** Resolves if the dependency that it checks works; rejects otherwise. */
export type ReadinessCheck = () => Promise<unknown>;

export interface OperationsServer extends AsyncDisposable {
  port: number;
  /** From now on `/readyz` depends on the checks; before that, it answers 503. */
  serve(): void;
  /** From now on `/readyz` answers 503, so that no new work is routed here. */
  drain(): void;
}

export interface OperationsServerOptions {
  host: string;
  port: number;
  metrics: Metrics;
  /** Ready if all of them pass. Limited to 1 s each. */
  readiness: Record<string, ReadinessCheck>;
}

const checkTimeoutMs = 1_000;

/**
 * Serves `/livez`, `/readyz` and `/metrics` for operators and probes, on a separate port. Started first and stopped
 * last.
 */
export async function startOperationsServer(options: OperationsServerOptions): Promise<OperationsServer> {
  let phase: 'starting' | 'serving' | 'draining' = 'starting';
  const findFailures = async (): Promise<string[]> => (phase === 'serving' ? failedChecks(options.readiness) : [phase]);
  measureReadiness(options.metrics, findFailures);
  const server = createServer((request, response) => {
    const answer = respond(request.url ?? '/').catch(() => ({
      status: 500,
      type: 'text/plain',
      body: 'the metrics cannot be read\n',
    }));
    void answer.then(({ status, type, body }) => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
    });
  });

  async function respond(url: string): Promise<{ status: number; type: string; body: string }> {
    switch (url) {
      case '/livez':
        return { status: 200, type: 'text/plain', body: 'ok\n' };
      case '/readyz': {
        const failures = await findFailures();
        return failures.length === 0
          ? { status: 200, type: 'text/plain', body: 'ok\n' }
          : { status: 503, type: 'text/plain', body: `not ready: ${failures.join(', ')}\n` };
      }
      case '/metrics':
        return { status: 200, type: options.metrics.contentType, body: await options.metrics.metrics() };
      default:
        return { status: 404, type: 'text/plain', body: 'not found\n' };
    }
  }

  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    serve: () => {
      phase = 'serving';
    },
    drain: () => {
      phase = 'draining';
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The names of the checks that fail or do not answer in time. */
export async function failedChecks(checks: Record<string, ReadinessCheck>): Promise<string[]> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await within(check(), checkTimeoutMs);
        return [];
      } catch {
        return [name];
      }
    }),
  );
  return results.flat();
}

/** The result of `/readyz` as a metric, to be watched over time. */
function measureReadiness(metrics: Metrics, findFailures: () => Promise<string[]>): void {
  const help = 'Whether this process accepts requests: 1 if /readyz returns 200, otherwise 0';
  measureAtScrape(metrics, { scheduling_ready: { help } }, async () => ({
    scheduling_ready: [{ value: Number((await findFailures()).length === 0) }],
  }));
}
