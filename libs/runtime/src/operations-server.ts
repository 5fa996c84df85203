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
  /**
   * What the process needs, and answers 503 without. It is ready without for {@link patienceMs} once it has had it: if
   * all replicas are without, none of them would be reached for some time after it is back.
   */
  dependencies?: Record<string, ReadinessCheck>;
  /** 30 s by default: by then, a replica is without what the others have. */
  patienceMs?: number;
}

/** The names of the checks that fail, or do not answer in time. */
interface Health {
  /** Why the process is not ready. */
  failures: string[];
  /** Dependencies that are not available. */
  missing: string[];
}

const checkTimeoutMs = 1_000;
const defaultPatienceMs = 30_000;

/**
 * Serves `/livez`, `/readyz` and `/metrics` for operators and probes, on a separate port. Started first and stopped
 * last.
 */
export async function startOperationsServer(options: OperationsServerOptions): Promise<OperationsServer> {
  let phase: 'starting' | 'serving' | 'draining' = 'starting';
  const { metrics, readiness, dependencies = {} } = options;
  const watched = watchDependencies(dependencies, options.patienceMs ?? defaultPatienceMs);
  const examine = async (): Promise<Health> => {
    if (phase === 'draining') return { failures: [phase], missing: [] };
    const [failures, { missing, abandoned }] = await Promise.all([failedChecks(readiness), watched()]);
    return { failures: phase === 'starting' ? [phase] : [...abandoned, ...failures], missing };
  };
  measureHealth(metrics, Object.keys(dependencies), examine);
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
        const { failures, missing } = await examine();
        if (failures.length > 0)
          return { status: 503, type: 'text/plain', body: `not ready: ${failures.join(', ')}\n` };
        const body = missing.length === 0 ? 'ok\n' : `ok, but without ${missing.join(', ')}\n`;
        return { status: 200, type: 'text/plain', body };
      }
      case '/metrics':
        return { status: 200, type: metrics.contentType, body: await metrics.metrics() };
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

/** Returns a function that says which dependencies are missing, and which of them have been missing for too long. */
function watchDependencies(
  dependencies: Record<string, ReadinessCheck>,
  patienceMs: number,
): () => Promise<{ missing: string[]; abandoned: string[] }> {
  const names = Object.keys(dependencies);
  // One that has not been there yet is missing since ever.
  const missingSinceMs = new Map(names.map((name) => [name, Number.NEGATIVE_INFINITY]));
  return async () => {
    const missing = await failedChecks(dependencies);
    const nowMs = performance.now();
    for (const name of names) {
      if (!missing.includes(name)) missingSinceMs.delete(name);
      else if (!missingSinceMs.has(name)) missingSinceMs.set(name, nowMs);
    }
    const abandoned = missing.filter((name) => nowMs - missingSinceMs.get(name)! >= patienceMs);
    return { missing, abandoned };
  };
}

/** The result of `/readyz` as metrics, to be watched over time. */
function measureHealth(metrics: Metrics, dependencies: readonly string[], examine: () => Promise<Health>): void {
  const gauges = {
    scheduling_ready: { help: 'Whether this process accepts requests: 1 if /readyz returns 200, otherwise 0' },
    scheduling_dependency_available: {
      help: 'Whether this process can use what it needs: 1, or 0 if it answers 503 for the lack of it',
      labelNames: ['dependency'],
    },
  };
  measureAtScrape(metrics, gauges, async () => {
    const { failures, missing } = await examine();
    return {
      scheduling_ready: [{ value: Number(failures.length === 0) }],
      scheduling_dependency_available: dependencies.map((dependency) => ({
        labels: { dependency },
        value: Number(!missing.includes(dependency)),
      })),
    };
  });
}
