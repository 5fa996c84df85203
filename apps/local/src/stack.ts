import { openCredentials } from '@scheduling/rpc';
import { createLogger } from '@scheduling/runtime';
import type { Settings } from './config.ts';
import { claimDataFolder, type DataFolder } from './data-folder.ts';
import { createAdminClient, demoCrmId, ensureDemoCrm } from './demo-crm.ts';
import type { Reporter } from './reporter.ts';
import { host, type Server, type Service, services, type Surroundings, publicUrl, type Unit } from './service-table.ts';
import { removeStackFile, type StackInfo, writeStackFile } from './stack-file.ts';
import { requirePort, type Servers, startServers } from './start-servers.ts';
import { choosePorts, createServiceRunner } from './start-services.ts';
import { type Running, supervise } from './supervise.ts';

export interface Stack extends AsyncDisposable {
  /** Kept true when a process is restarted. */
  info: StackInfo;
  /** Stops everything in order; within 10 s. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Gives up starting. */
  signal?: AbortSignal;
  /** Ends every process this moment, also while the stack starts or stops. The databases recover at the next start. */
  killSignal?: AbortSignal;
}

type Pids = StackInfo['pids'];

interface SupervisedUnit {
  unit: Unit;
  running: Running;
  restart: () => Promise<Running>;
}

/**
 * Starts everything that a laptop needs, and returns when every `/readyz` is green. What an earlier, killed command left behind is stopped
 * first. When the signal aborts, or something does not start, everything that was started is stopped again before this rejects.
 *
 * @throws UsageError for what the person at the terminal can put right: a taken port, a data folder in use
 */
export async function startStack(settings: Settings, reporter: Reporter, options: StartOptions = {}): Promise<Stack> {
  const { signal = new AbortController().signal, killSignal } = options;
  const folder = await claimDataFolder(settings.dataDir);
  killSignal?.addEventListener('abort', folder.killProcesses, { once: true });
  try {
    const starting = assemble(settings, folder, reporter, signal);
    // The one that loses the race has nobody who listens to it.
    starting.catch(() => {});
    return await Promise.race([starting, rejectOnAbort(signal)]);
  } catch (error) {
    await folder.markStopping();
    await folder.stopProcesses();
    await folder.release();
    throw error;
  }
}

async function assemble(settings: Settings, folder: DataFolder, reporter: Reporter, signal: AbortSignal): Promise<Stack> {
  if (settings.port !== 0) await requirePort(settings.port);
  if (settings.fresh) await folder.empty();
  await removeStackFile(folder.path);
  const ports = await choosePorts(settings.port);
  const servers = await startServers(settings, folder, reporter);
  signal.throwIfAborted();
  const runner = createServiceRunner(settings, folder, { ports, logLevel: settings.logLevel, ...servers }, reporter);
  await runner.migrate();
  signal.throwIfAborted();
  const started = services.map(async (unit): Promise<SupervisedUnit> => {
    const running = await reporter.step(unit, () => runner.start(unit));
    return { unit, running, restart: () => runner.start(unit) };
  });
  const units: SupervisedUnit[] = [...servers.started, ...(await Promise.all(started))];
  signal.throwIfAborted();

  using credentials = openCredentials({ files: settings.certificates, logger: createLogger({ service: 'local', level: 'silent' }) });
  using admin = createAdminClient(`${host}:${ports.identity.main}`, { credentials });
  const apiKey = await ensureDemoCrm(admin, folder.path);
  const info = describeStack(ports, servers, apiKey, units);
  await writeStackFile(folder.path, info);
  return superviseStack(info, units, folder, reporter);
}

function superviseStack(info: StackInfo, units: SupervisedUnit[], folder: DataFolder, reporter: Reporter): Stack {
  const supervision = new AbortController();
  // One after the other: processes that come back at the same moment must not get into each other's draft of the file.
  let written = Promise.resolve();
  const publish = (): Promise<void> => (written = written.then(() => (supervision.signal.aborted ? undefined : writeStackFile(folder.path, info))));
  const watches = units.map(({ unit, running, restart }) =>
    supervise(running, {
      name: unit,
      say: reporter.warn,
      signal: supervision.signal,
      restart: async () => {
        const replacement = await restart();
        info.pids[unit] = replacement.pid;
        await publish();
        return replacement;
      },
    }),
  );
  const finish = async (): Promise<void> => {
    supervision.abort();
    await folder.markStopping();
    await folder.stopProcesses();
    await Promise.all(watches);
    await removeStackFile(folder.path);
    await folder.release();
  };
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= finish());
  return { info, stop, [Symbol.asyncDispose]: stop };
}

function describeStack(ports: Surroundings['ports'], servers: Servers, apiKey: string, units: SupervisedUnit[]): StackInfo {
  const gateway = publicUrl(ports);
  const pidOf = (unit: Unit): number | null => units.find((candidate) => candidate.unit === unit)?.running.pid ?? null;
  const all: (Service | Server)[] = ['gateway', 'identity', 'calendar', 'customer', 'notification', 'postgres', 'nats', 'inbox'];
  return {
    gateway,
    docs: `${gateway}/docs`,
    inbox: servers.inboxUrl,
    smtp: servers.smtpUrl,
    nats: servers.natsUrl,
    databases: servers.databaseUrls,
    crmId: demoCrmId,
    apiKey,
    services: Object.fromEntries(services.map((service) => [service, `${host}:${ports[service].main}`])) as Record<Service, string>,
    operations: Object.fromEntries(services.map((service) => [service, `http://${host}:${ports[service].metrics}`])) as Record<Service, string>,
    pids: Object.fromEntries(all.map((unit) => [unit, pidOf(unit)])) as Pids,
  };
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
