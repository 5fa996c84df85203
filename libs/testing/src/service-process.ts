import { type ChildExit, freePort, spawnChild, waitUntilReady } from '@scheduling/embedded';
import { newNamedKey } from '@scheduling/runtime';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createMigratedDatabase } from './database.ts';

export interface ServiceProcess extends AsyncDisposable {
  /** The address of its gRPC server, `host:port`. */
  address: string;
  /** Where it serves operators. */
  adminAddress: string;
  pid: number;
  databaseUrl: string;
}

/** The services that others call. */
const serviceNames = ['identity', 'calendar', 'customer'] as const;
export type ServiceName = (typeof serviceNames)[number];

export type ServiceProcesses<Name extends ServiceName> = Record<Name, ServiceProcess> & {
  /** `IDENTITY_ADDRESS` and so on, for a process that calls them. Services that were not started do not respond. */
  addresses: Record<string, string>;
} & AsyncDisposable;

/** Nothing listens on this address. */
export const nowhere = '127.0.0.1:1';

const readyTimeoutMs = 60_000;
const stopTimeoutMs = 10_000;

interface ServiceProcessOptions {
  environment?: Record<string, string>;
  /** For a global setup, to which nothing is injected. */
  postgresUrl?: string;
}

/**
 * Starts other teams' services in separate processes, as in production, each with a database of its own, for tests that
 * call them. They call each other; services that are not among them do not respond.
 *
 * @param natsUrl the address of NATS for each of them
 */
export async function startServiceProcesses<Name extends ServiceName>(
  names: readonly Name[],
  natsUrl: (service: ServiceName) => string,
  { environment, postgresUrl }: ServiceProcessOptions = {},
): Promise<ServiceProcesses<Name>> {
  await using starting = new AsyncDisposableStack();
  const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()] as const)));
  const addressOf = (name: ServiceName): string => (name in ports ? `127.0.0.1:${ports[name]}` : nowhere);
  const addresses = Object.fromEntries(serviceNames.map((name) => [`${name.toUpperCase()}_ADDRESS`, addressOf(name)]));
  const start = async (name: Name): Promise<[Name, ServiceProcess]> => {
    const adminPort = await freePort();
    const given = {
      ...addresses,
      GRPC_PORT: String(ports[name]),
      ADMIN_PORT: String(adminPort),
      NATS_URL: natsUrl(name),
      LINK_KEYS: newNamedKey(),
      ...environment,
    };
    const process = await startServiceProcess(name, given, postgresUrl);
    return [name, starting.use({ ...process, address: addressOf(name), adminAddress: `127.0.0.1:${adminPort}` })];
  };
  // All of them, so that those which did start are stopped if one does not.
  const results = await Promise.allSettled(names.map(start));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
  const services = Object.fromEntries(
    results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])),
  );
  const started = starting.move();
  return {
    ...(services as Record<Name, ServiceProcess>),
    addresses,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function startServiceProcess(
  name: string,
  given: Record<string, string>,
  postgresUrl?: string,
): Promise<AppProcess & { databaseUrl: string }> {
  const migrate = (url: string) =>
    promisify(execFile)(process.execPath, [mainOf(name), 'migrate'], {
      env: { ...withDefaults(given), DATABASE_URL: url },
    });
  const databaseUrl = await createMigratedDatabase(name, migrate, postgresUrl);
  return { ...(await startAppProcess(name, { ...given, DATABASE_URL: databaseUrl })), databaseUrl };
}

interface AppProcess extends AsyncDisposable {
  pid: number;
  metricsPort: number;
  /** Sends the signal once, and waits for the process to end. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<ChildExit>;
}

/**
 * Starts one of the applications in a process of its own and waits until it is ready.
 *
 * @param name its folder under `apps`
 */
export async function startAppProcess(name: string, environment: Record<string, string>): Promise<AppProcess> {
  const metricsPort = await freePort();
  const logDir = await mkdtemp(join(tmpdir(), `scheduling-test-${name}-`));
  const child = await spawnChild({
    command: process.execPath,
    args: [mainOf(name)],
    cwd: logDir,
    environment: withDefaults({ ...environment, METRICS_PORT: String(metricsPort) }),
    logFile: join(logDir, `${name}.log`),
  });
  await waitUntilReady(child, async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok, readyTimeoutMs);
  return {
    pid: child.pid,
    metricsPort,
    end: async (signal) => {
      await child.stop(signal, stopTimeoutMs);
      return child.exited;
    },
    [Symbol.asyncDispose]: async () => {
      await child.stop('SIGTERM', stopTimeoutMs);
      await rm(logDir, { recursive: true, force: true });
    },
  };
}

function mainOf(name: string): string {
  return fileURLToPath(new URL(`../../../apps/${name}/src/main.ts`, import.meta.url));
}

function withDefaults(environment: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, LISTEN_HOST: '127.0.0.1', LOG_LEVEL: 'warn', ...environment };
}
