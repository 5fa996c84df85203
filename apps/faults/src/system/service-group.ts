import { type Child, freePort } from '@scheduling/embedded';
import { type Service, type ServiceOptions, startService, type Surroundings } from '@scheduling/stack';
import { setTimeout as delay } from 'node:timers/promises';

/** A process of a service. */
export interface Replica {
  child: Child;
  ports: { main: number; metrics: number; admin: number };
  /** Which of its service's replicas it is. The one that replaces it has the same number. */
  number: number;
  /** It is about to end, as it should. */
  isLeaving: boolean;
}

/** The replicas of one service. One that ends unexpectedly is replaced at once. */
export interface ServiceGroup {
  service: Service;
  /** Those that are ready and stay: they get new connections. */
  readonly ready: readonly Replica[];
  /** Starts all of them, and resolves when they are ready, however long it takes. */
  start(): Promise<void>;
  /**
   * Starts a new replica for each, and when that is ready stops the old one with SIGTERM. Then it waits before it does
   * the next one.
   */
  replaceAll(pauseMs?: number): Promise<void>;
  /** Stops all of them, with SIGTERM. */
  stop(): Promise<void>;
  /** Exits other than with code 0 after a SIGTERM, or by SIGKILL. */
  badExits: BadExit[];
}

export interface BadExit {
  text: string;
  /** On the clock of `performance`. */
  atMs: number;
  /** After a SIGTERM, with the code of a process that was not done within 10 s. */
  isSlow: boolean;
}

/** Kubernetes waits for 30 s. */
const stopTimeoutMs = 15_000;
const retryMs = 500;

/** A group of `count` replicas, which `start` starts. */
export function createServiceGroup(options: ServiceOptions, count: number): ServiceGroup {
  const { service } = options;
  const stopping = new AbortController();
  const replicas = new Set<Replica>();
  /** Those that are not ready yet. */
  const starting = new Set<Promise<void>>();

  const startOnce = async (number: number): Promise<void> => {
    const ports = { main: await freePort(), metrics: await freePort(), admin: await freePort() };
    const child = await startService({ ...options, around: withPorts(options.around, service, ports) });
    const replica: Replica = { child, ports, number, isLeaving: false };
    replicas.add(replica);
    void child.exited.then(async ({ code }) => {
      replicas.delete(replica);
      if (replica.isLeaving) return;
      // Whatever is broken around it, a process ends only if it is killed.
      if (code !== null)
        group.badExits.push({
          text: `${service} exited by itself with code ${code}`,
          atMs: performance.now(),
          isSlow: false,
        });
      await start(number);
    });
  };
  /** A service that cannot start, for example because its database is away, is started until it can. */
  const start = async (number: number): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        const attempt = startOnce(number);
        starting.add(attempt);
        await attempt.finally(() => starting.delete(attempt));
        return;
      } catch {
        await delay(retryMs);
      }
    }
  };
  const leave = async (replica: Replica): Promise<void> => {
    replica.isLeaving = true;
    await replica.child.stop('SIGTERM', stopTimeoutMs);
    const { code, signal } = await replica.child.exited;
    if (code !== 0 && signal !== 'SIGKILL')
      group.badExits.push({
        text: `${service} exited with ${code ?? signal} after SIGTERM`,
        atMs: performance.now(),
        isSlow: code === 1,
      });
  };

  const group: ServiceGroup = {
    service,
    get ready() {
      return [...replicas].filter(({ isLeaving }) => !isLeaving);
    },
    badExits: [],
    start: async () => {
      await Promise.all(Array.from({ length: count }, (_, number) => start(number)));
    },
    replaceAll: async (pauseMs = 0) => {
      for (const replica of group.ready) {
        await start(replica.number);
        await leave(replica);
        await delay(pauseMs);
      }
    },
    stop: async () => {
      stopping.abort();
      await Promise.allSettled(starting);
      await Promise.all([...replicas].map(leave));
    },
  };
  return group;
}

function withPorts(around: Surroundings, service: Service, { main, metrics, admin }: Replica['ports']): Surroundings {
  return {
    ...around,
    ports: { ...around.ports, [service]: { main, metrics } },
    adminPorts: { ...around.adminPorts, [service]: admin },
  };
}
