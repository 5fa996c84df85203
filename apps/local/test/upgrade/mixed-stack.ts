import { type Child, startInbox } from '@scheduling/embedded';
import {
  choosePorts,
  type DatabaseService,
  databaseServices,
  host,
  migrateService,
  type NatsService,
  natsServices,
  newNamedKey,
  publicUrl,
  type Service,
  type ServiceOptions,
  services,
  type StackInfo,
  startService,
  type Surroundings,
} from '@scheduling/stack';
import { createTestDatabase, startTestNats } from '@scheduling/testing';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { demoCrmId, ensureDemoCrm } from '../../src/demo-crm.ts';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { servicesOf } from './landed-version.ts';

/**
 * The code of each service: a folder that contains `apps` and `libs`. A service that is new does not run in a version
 * without it.
 */
export type Versions = Record<Service, string>;

/** Permanent databases, NATS and inbox, and a process for each service that may be of any version. */
export interface MixedStack extends AsyncDisposable {
  info: Pick<StackInfo, 'gateway' | 'inbox' | 'crmId' | 'apiKey' | 'databases' | 'services' | 'admin'>;
  /** Runs the migrations of one version on all databases, whatever version is running. */
  migrate(root: string): Promise<void>;
  /** Stops the services whose version changes, and returns when the other version is ready. */
  run(versions: Versions): Promise<void>;
  /** The ERROR log lines of the services, and their dead letters. */
  complaints(): Promise<string[]>;
}

const stopTimeoutMs = 10_000;

/** Migrates the databases with a version's own command and starts all services of that version. */
export async function startMixedStack(root: string): Promise<MixedStack> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-upgrade-stack-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const nats = starting.use(await startTestNats());
  const inbox = starting.use(await startInbox({ dataDir: folder }));
  const databases = Object.fromEntries(
    await Promise.all(databaseServices.map(async (service) => [service, await createTestDatabase()] as const)),
  ) as Record<DatabaseService, string>;
  const natsUrls = Object.fromEntries(natsServices.map((service) => [service, nats.url(service)])) as Record<
    NatsService,
    string
  >;
  const around: Surroundings = {
    ...(await choosePorts(0)),
    databaseUrls: databases,
    natsUrls,
    smtpUrl: inbox.smtpUrl,
    sandboxSmtpUrl: inbox.smtpUrl,
    webhookSecretKeys: newNamedKey(),
    linkKeys: newNamedKey(),
    logLevel: 'warn',
  };
  const runner = createRunner(folder, around);
  starting.defer(() => runner.stop());
  await runner.migrate(root);
  await runner.run(Object.fromEntries(services.map((service) => [service, root])) as Versions);

  const addresses = Object.fromEntries(
    services.map((service) => [service, `${host}:${around.ports[service].main}`]),
  ) as StackInfo['services'];
  const admin = Object.fromEntries(
    databaseServices.map((service) => [service, `${host}:${around.adminPorts[service]}`]),
  ) as StackInfo['admin'];
  using client = createAdminClient(admin.identity);
  const apiKey = await ensureDemoCrm(client, folder);
  const info = {
    gateway: publicUrl(around.ports),
    inbox: inbox.webUrl,
    crmId: demoCrmId,
    apiKey,
    databases,
    services: addresses,
    admin,
  };
  const started = starting.move();
  return {
    info,
    migrate: runner.migrate,
    run: runner.run,
    complaints: () => readErrors(folder),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function createRunner(folder: string, around: Surroundings) {
  const running = new Map<Service, { root: string; child: Child }>();

  const optionsOf = (service: Service, root: string): ServiceOptions => ({
    service,
    around,
    root,
    logFile: logFileOf(folder, service),
    inherited: { PATH: process.env['PATH'] },
  });

  const replace = async (service: Service, root: string): Promise<void> => {
    await running.get(service)?.child.stop('SIGTERM', stopTimeoutMs);
    running.delete(service);
    if (!servicesOf(root).includes(service)) return;
    running.set(service, { root, child: await startService(optionsOf(service, root)) });
  };

  return {
    migrate: async (root: string): Promise<void> => {
      for (const service of databaseServices.filter((each) => servicesOf(root).includes(each)))
        await migrateService(optionsOf(service, root));
    },
    run: async (versions: Versions): Promise<void> => {
      await Promise.all(
        services
          .filter((service) => running.get(service)?.root !== versions[service])
          .map((service) => replace(service, versions[service])),
      );
    },
    stop: async (): Promise<void> => {
      await Promise.all([...running.values()].map(({ child }) => child.stop('SIGTERM', stopTimeoutMs)));
    },
  };
}

async function readErrors(folder: string): Promise<string[]> {
  const lines = await Promise.all(
    services.map(async (service) =>
      (await readLog(folder, service)).split('\n').filter((line) => /"level":"(error|fatal)"/.test(line)),
    ),
  );
  return lines.flat();
}

/** Empty if the service has not run yet. */
async function readLog(folder: string, service: Service): Promise<string> {
  return existsSync(logFileOf(folder, service)) ? readFile(logFileOf(folder, service), 'utf8') : '';
}

function logFileOf(folder: string, service: Service): string {
  return join(folder, `${service}.log`);
}
