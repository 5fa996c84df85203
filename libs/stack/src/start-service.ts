import { type Child, describeExit, lastLines, type OnSpawn, spawnChild, waitUntilReady } from '@scheduling/embedded';
import type { Service } from '@scheduling/runtime';
import { join } from 'node:path';
import { host, serviceEnvironment, type Surroundings } from './service-table.ts';

export interface ServiceOptions {
  service: Service;
  around: Surroundings;
  /** The checkout of the repository whose code runs. */
  root: string;
  logFile: string;
  /** Variables that the operating system and the network require of any process, beside the service's own. */
  inherited: NodeJS.ProcessEnv;
  onSpawn?: OnSpawn;
}

const migrationTimeoutMs = 60_000;
const readyTimeoutMs = 60_000;
const probeTimeoutMs = 2_000;
/**
 * In MiB. The heap that Node chooses in a pod with the 512 MiB of the manifests; on a machine with more memory it would
 * hardly collect garbage.
 */
const maxHeap = 268;
/** As in the image of the services (ADR 18). */
export const nodeArguments = ['--max-semi-space-size=8', '--heap-growing-percent=150'];

/**
 * Nobody waits for what notification and webhook do, so requests come first: they get a third of their share. In
 * production, every pod has its own.
 */
const niceness: Partial<Record<Service, number>> = { notification: 5, webhook: 5 };

/** Runs the process of a service as in production: configured only by environment variables. */
export function spawnService(
  { service, around, root, logFile, inherited, onSpawn }: ServiceOptions,
  command: string[] = [],
): Promise<Child> {
  return spawnChild({
    command: process.execPath,
    args: [`--max-heap-size=${maxHeap}`, ...nodeArguments, join(root, 'apps', service, 'src', 'main.ts'), ...command],
    cwd: join(root, 'apps', service),
    environment: { ...inherited, ...serviceEnvironment(service, around) },
    logFile,
    niceness: niceness[service] ?? 0,
    onSpawn,
  });
}

/** Starts a service and returns when its `/readyz` is green. */
export async function startService(options: ServiceOptions): Promise<Child> {
  const child = await spawnService(options);
  await waitUntilReady(child, () => isReady(options.around.ports[options.service].metrics), readyTimeoutMs);
  return child;
}

/** Migrates the database of a service to the schema of its code. */
export async function migrateService(options: ServiceOptions): Promise<void> {
  const child = await spawnService(options, ['migrate']);
  const killTimer = setTimeout(() => void child.stop('SIGTERM', 1_000), migrationTimeoutMs);
  const exit = await child.exited;
  clearTimeout(killTimer);
  if (exit.code !== 0)
    throw new Error(
      `migrating ${options.service} ended with ${describeExit(exit)}. The end of its log:\n${await lastLines(child.logFile)}`,
    );
}

async function isReady(metricsPort: number): Promise<boolean> {
  const response = await fetch(`http://${host}:${metricsPort}/readyz`, { signal: AbortSignal.timeout(probeTimeoutMs) });
  await response.body?.cancel();
  return response.ok;
}
