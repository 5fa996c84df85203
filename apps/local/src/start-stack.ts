import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@scheduling/client';
import { openCredentials } from '@scheduling/rpc';
import { createLogger } from '@scheduling/runtime';
import {
  choosePorts,
  databaseServices,
  host,
  pageUrl,
  publicUrl,
  servers as serverNames,
  type Service,
  services,
  type StackInfo,
  type Surroundings,
  type Unit,
} from '@scheduling/stack';
import type { Settings } from './config.ts';
import { claimDataFolder, type DataFolder, isUnusedFolder } from './data-folder.ts';
import { demoCrmId, ensureDemoCrm } from './demo-crm.ts';
import { ensureDemoPage } from './demo-page.ts';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { checkGivenServers } from './given-servers.ts';
import type { Reporter } from './reporter.ts';
import { ensureSecretKeys } from './secret-keys.ts';
import { removeStackFile, writeStackFile } from './stack-file.ts';
import { requirePort, type Servers, startServers } from './start-servers.ts';
import { createServiceRunner } from './start-services.ts';
import { type Running, supervise } from './supervise.ts';

export interface Stack extends AsyncDisposable {
  /** Updated when a process is restarted. */
  info: StackInfo;
  /** Problems that did not prevent the start. */
  warnings: string[];
  /** Aborts when the data folder was removed or replaced: the databases are gone, so the stack should be stopped. */
  folderLost: AbortSignal;
  /** Stops everything in order, even if the data folder was removed or replaced; within 10 s. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Cancels the start. */
  signal?: AbortSignal;
  /** Kills every process immediately, even while the stack starts or stops. The databases recover at the next start. */
  killSignal?: AbortSignal;
}

type Pids = StackInfo['pids'];

const folderPollMs = 2_000;

interface SupervisedUnit {
  unit: Unit;
  running: Running;
  restart: () => Promise<Running>;
}

/**
 * Starts everything that a local stack needs, and returns when every `/readyz` is green. Processes left over from an
 * earlier, killed command are stopped first. If the signal aborts, or something does not start, everything that was
 * started is stopped again before this rejects.
 *
 * @throws UsageError for what the user can fix: a port in use, a data folder in use, a given database that cannot be
 *   used
 */
export async function startStack(settings: Settings, reporter: Reporter, options: StartOptions = {}): Promise<Stack> {
  const { signal = new AbortController().signal, killSignal } = options;
  // Before the claim, so that a port in use does not leave a new folder behind. In an existing folder, the gateway of a
  // killed command may hold the port until the claim stops it.
  if (await isUnusedFolder(settings.dataDir)) await requirePort(settings.port);
  const warnings = await checkGivenServers(settings.given);
  signal.throwIfAborted();
  const folder = await claimDataFolder(settings.dataDir, reporter.note);
  killSignal?.addEventListener('abort', folder.killProcesses, { once: true });
  try {
    const starting = assemble(settings, folder, warnings, reporter, signal);
    // If this promise loses the race, nothing handles its rejection.
    starting.catch(() => {});
    return await Promise.race([starting, rejectOnAbort(signal)]);
  } catch (error) {
    await folder.stop();
    await release(folder, reporter);
    throw error;
  }
}

async function assemble(
  settings: Settings,
  folder: DataFolder,
  warnings: string[],
  reporter: Reporter,
  signal: AbortSignal,
): Promise<Stack> {
  await requirePort(settings.port);
  if (settings.fresh) await folder.empty();
  await removeStackFile(folder.path);
  const ports = await choosePorts(settings.port);
  const servers = await startServers(settings, folder, reporter);
  signal.throwIfAborted();
  const keys = {
    webhookSecretKeys: await ensureSecretKeys(folder.path, 'webhook-key'),
    linkKeys: await ensureSecretKeys(folder.path, 'link-key'),
  };
  const runner = createServiceRunner(
    settings,
    folder,
    { ...ports, logLevel: settings.logLevel, ...keys, ...servers },
    reporter,
  );
  await runner.migrate();
  signal.throwIfAborted();
  const started = services.map(async (unit): Promise<SupervisedUnit> => {
    const running = await reporter.step(unit, () => runner.start(unit));
    return { unit, running, restart: () => runner.restart(unit) };
  });
  const units: SupervisedUnit[] = [...servers.started, ...(await Promise.all(started))];
  signal.throwIfAborted();

  using credentials = openCredentials({
    files: settings.certificates,
    logger: createLogger({ service: 'local', level: 'silent' }),
  });
  using admin = createAdminClient(`${host}:${ports.adminPorts.identity}`, { credentials });
  const apiKey = await ensureDemoCrm(admin, folder.path);
  const info = describeStack(ports, servers, apiKey, units);
  const client = createClient({ url: info.gateway, crmId: demoCrmId, key: apiKey });
  await ensureDemoPage(client).then(
    (bookingPage) => (info.bookingPage = bookingPage),
    (error: Error) => warnings.push(`The booking page of the demo could not be made: ${error.message}`),
  );
  signal.throwIfAborted();
  await writeStackFile(folder.path, info);
  return { warnings, ...superviseStack(info, units, folder, reporter) };
}

function superviseStack(
  info: StackInfo,
  units: SupervisedUnit[],
  folder: DataFolder,
  reporter: Reporter,
): Omit<Stack, 'warnings'> {
  const supervision = new AbortController();
  const folderLost = new AbortController();
  // Sequentially: processes that restart at the same time must not overwrite each other's draft of the file.
  let written = Promise.resolve();
  const publish = (): Promise<void> =>
    (written = written.then(async () => {
      if (supervision.signal.aborted || (await folder.isLost())) return;
      // The process is running: this must not look like a failed start.
      await writeStackFile(folder.path, info).catch((error: Error) =>
        reporter.warn(`stack.json is out of date: ${error.message}`),
      );
    }));
  const watches = units.map(({ unit, running, restart }) =>
    supervise(running, {
      name: unit,
      say: reporter.warn,
      signal: supervision.signal,
      restart: async () => {
        if (await folder.isLost()) throw new Error('the data folder was removed or replaced');
        const replacement = await restart();
        info.pids[unit] = replacement.pid;
        await publish();
        return replacement;
      },
    }),
  );
  const folderWatch = watchFolder(folder, folderLost, supervision.signal);
  const finish = async (): Promise<void> => {
    supervision.abort();
    await folder.stop();
    await Promise.all([...watches, folderWatch]);
    await release(folder, reporter);
  };
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= finish());
  return { info, folderLost: folderLost.signal, stop, [Symbol.asyncDispose]: stop };
}

async function watchFolder(folder: DataFolder, lost: AbortController, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await folder.isLost())) await delay(folderPollMs, undefined, { signal }).catch(() => {});
  if (!signal.aborted) lost.abort();
}

/** Removes the files that mark the folder as in use; if that fails, the next start does it. */
async function release(folder: DataFolder, reporter: Reporter): Promise<void> {
  try {
    if (!(await folder.isLost())) await removeStackFile(folder.path);
    await folder.release();
  } catch (error) {
    reporter.warn(`everything is stopped, but the data folder could not be cleaned up: ${(error as Error).message}`);
  }
}

function describeStack(
  { ports, adminPorts }: Pick<Surroundings, 'ports' | 'adminPorts'>,
  servers: Servers,
  apiKey: string,
  units: SupervisedUnit[],
): StackInfo {
  const gateway = publicUrl(ports);
  const pidOf = (unit: Unit): number | null => units.find((candidate) => candidate.unit === unit)?.running.pid ?? null;
  const all: Unit[] = [...services, ...serverNames];
  return {
    gateway,
    docs: `${gateway}/docs`,
    page: pageUrl(ports),
    bookingPage: null,
    inbox: servers.inboxUrl,
    smtp: servers.smtpUrl,
    nats: servers.natsUrls.doctor,
    databases: servers.databaseUrls,
    crmId: demoCrmId,
    apiKey,
    services: Object.fromEntries(services.map((service) => [service, `${host}:${ports[service].main}`])) as Record<
      Service,
      string
    >,
    admin: Object.fromEntries(
      databaseServices.map((service) => [service, `${host}:${adminPorts[service]}`]),
    ) as StackInfo['admin'],
    operations: Object.fromEntries(
      services.map((service) => [service, `http://${host}:${ports[service].metrics}`]),
    ) as Record<Service, string>,
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
