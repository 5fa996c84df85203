import { signalProcess, startNats, startPostgres } from '@scheduling/embedded';
import {
  choosePorts,
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
  type Surroundings,
} from '@scheduling/stack';
import { createTestUsers } from '@scheduling/testing/test-users';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createDatabaseServer, type DatabaseServer } from './database-server.ts';
import { createEventServer, type EventServer } from './event-server.ts';
import { openDisk } from './disk.ts';
import { openSystemLink, type SystemLink } from './link.ts';
import { type MailServer, startMailServer } from './mail-server.ts';
import type { Orders } from './orders.ts';
import { createServiceGroup, type Replica, type ServiceGroup } from './service-group.ts';

/** The whole system, with a proxy on every way between two of its processes, and the means to break each part of it. */
export interface System extends AsyncDisposable {
  /** The gateway as clients reach it. */
  gatewayUrl: string;
  groups: Record<Service, ServiceGroup>;
  /**
   * By `<caller>-<called>`: `calendar-postgres`, `calendar-nats`, `notification-smtp`, `client-gateway`, `client-page`,
   * and for each replica `calendar-identity-0`.
   */
  links: Map<string, SystemLink>;
  postgres: DatabaseServer;
  nats: EventServer;
  mail: MailServer;
  /** Gives a process its orders, which replace earlier ones. */
  order(replica: Replica, orders: Orders): Promise<void>;
  /** The data of Postgres and NATS, and the logs. */
  folder: string;
  /** Leaves the folder where it is, for whoever looks for the cause of a violation. */
  keepFolder(): void;
}

interface SystemOptions {
  /** The checkout whose services run. */
  root: string;
  /** NODE_OPTIONS of the services, instead of those that load the crash points, for `order`. */
  nodeOptions?: string;
  onProgress: (text: string) => void;
  signal: AbortSignal;
}

/** Of each service, as in production: they share its work, and compete for it. */
const replicaCount = 2;

/** The other services that each one calls. */
const calls: Record<Service, Service[]> = {
  gateway: ['identity', 'calendar', 'customer', 'notification', 'webhook'],
  page: ['identity', 'calendar'],
  identity: [],
  calendar: ['identity', 'customer'],
  customer: ['identity', 'calendar'],
  notification: ['identity', 'calendar', 'customer'],
  webhook: ['identity', 'calendar', 'customer'],
};

/** Rejects when the signal aborts, and leaves nothing behind. */
export async function startSystem({ root, nodeOptions, onProgress, signal }: SystemOptions): Promise<System> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-faults-'));
  let isKept = false;
  starting.defer(async () => {
    if (!isKept) await rm(folder, { recursive: true, force: true });
  });
  onProgress('starting Postgres, NATS and the mail server');
  const { disks, postgres, nats, mail, users } = await startServers(starting, folder);
  const links = new Map<string, SystemLink>();
  const groups = {} as Record<Service, ServiceGroup>;
  const link = async (name: string, targets: () => readonly number[]): Promise<number> => {
    const opened = starting.use(await openSystemLink(name, targets));
    links.set(name, opened);
    return opened.port;
  };
  const around = await connectAll(link, groups, {
    postgres,
    nats,
    mail,
    natsUrlOf: (service) => users.urlFor(service, nats.url),
  });
  const orders = join(folder, 'orders');
  await mkdir(orders);
  const inherited = environmentOf(nodeOptions ?? crashPointsOf(root, orders));
  const optionsOf = (service: Service): ServiceOptions => ({
    service,
    around,
    root,
    logFile: join(folder, 'logs', `${service}.log`),
    inherited,
  });
  for (const service of services) {
    groups[service] = createServiceGroup(optionsOf(service), replicaCount);
    starting.defer(() => groups[service].stop());
  }
  signal.throwIfAborted();
  onProgress('creating the tables');
  await Promise.all(databaseServices.map((service) => migrateService(optionsOf(service))));
  signal.throwIfAborted();
  onProgress('starting the services');
  await Promise.all(services.map((service) => groups[service].start()));
  signal.throwIfAborted();

  const started = starting.move();
  return {
    gatewayUrl: publicUrl(around.ports),
    groups,
    links,
    postgres,
    nats,
    mail,
    order: async ({ child }, given) => {
      await writeFile(join(orders, `${child.pid}.json`), JSON.stringify(given));
      signalProcess(child.pid, 'SIGUSR2');
    },
    folder,
    keepFolder: () => {
      isKept = true;
      for (const disk of Object.values(disks)) disk.keep();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function startServers(starting: AsyncDisposableStack, folder: string) {
  const disks = {
    postgres: starting.use(await openDisk(join(folder, 'postgres-disk'), 4_096)),
    nats: starting.use(await openDisk(join(folder, 'nats-disk'), 512)),
  };
  const postgres = starting.use(
    await createDatabaseServer(disks.postgres, (port) =>
      startPostgres({ dataDir: disks.postgres.path, port, durable: false }),
    ),
  );
  const users = createTestUsers();
  const nats = starting.use(
    await createEventServer(
      disks.nats,
      (port) => startNats({ dataDir: disks.nats.path, port, users: users.settings }),
      (url) => users.urlFor('test', url),
    ),
  );
  return { disks, postgres, nats, mail: starting.use(await startMailServer()), users };
}

/** Opens a way from every process to every other that it uses. */
async function connectAll(
  link: (name: string, targets: () => readonly number[]) => Promise<number>,
  groups: Partial<Record<Service, ServiceGroup>>,
  servers: Pick<System, 'postgres' | 'nats' | 'mail'> & { natsUrlOf: (service: NatsService) => string },
): Promise<Surroundings> {
  /**
   * Of the replica with this number, or of all. While one replaces another, there may be two with the same. None before
   * the services exist, if a process of another system still looks for its own at this port.
   */
  const portsOf = (service: Service, number?: number) => () =>
    (groups[service]?.ready ?? [])
      .filter((replica) => number === undefined || replica.number === number)
      .map(({ ports }) => ports.main);
  /**
   * As the name of a headless Service does, this leads to every replica, and each caller spreads its calls over them.
   */
  const linkReplicas = async (caller: Service, called: Service): Promise<string> => {
    const ports = await Promise.all(
      Array.from({ length: replicaCount }, (_, number) =>
        link(`${caller}-${called}-${number}`, portsOf(called, number)),
      ),
    );
    return `ipv4:${ports.map((port) => `${host}:${port}`).join()}`;
  };
  const through = async (name: string, url: string): Promise<string> => {
    const address = new URL(url);
    const port = Number(address.port);
    address.port = String(await link(name, () => [port]));
    return address.href;
  };
  const addresses = new Map<string, string>();
  const databaseUrls = {} as Surroundings['databaseUrls'];
  const natsUrls = {} as Surroundings['natsUrls'];
  for (const caller of services) {
    for (const called of calls[caller]) addresses.set(`${caller} ${called}`, await linkReplicas(caller, called));
  }
  for (const service of natsServices) natsUrls[service] = await through(`${service}-nats`, servers.natsUrlOf(service));
  for (const service of databaseServices)
    databaseUrls[service] = await through(`${service}-postgres`, await servers.postgres.createDatabase(service));
  const chosen = await choosePorts(await link('client-gateway', portsOf('gateway')));
  const page = { ...chosen.ports.page, main: await link('client-page', portsOf('page')) };
  return {
    ...chosen,
    ports: { ...chosen.ports, page },
    databaseUrls,
    natsUrls,
    smtpUrl: await through('notification-smtp', servers.mail.url),
    addressOf: (caller, called) => addresses.get(`${caller} ${called}`)!,
    webhookSecretKeys: newNamedKey(),
    linkKeys: newNamedKey(),
    logLevel: 'warn',
  };
}

/** Loads the module that lets a service crash on order. */
function crashPointsOf(root: string, orders: string): string {
  const crashPoints = pathToFileURL(join(root, 'apps/faults/src/system/crash-points.ts'));
  crashPoints.searchParams.set('folder', orders);
  return `--import=${crashPoints.href}`;
}

/**
 * Beside a service's own variables: there is no limit to the mails, because the load has more than a CRM may send in an
 * hour, and each person has a network address, because one address may open only so many pages in a minute.
 */
function environmentOf(nodeOptions: string): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return {
    PATH,
    HOME,
    NODE_COMPILE_CACHE,
    NODE_OPTIONS: nodeOptions,
    MAILS_PER_HOUR_AND_CRM: '0',
    MAILS_PER_HOUR_AND_RECIPIENT: '0',
    TRUSTED_PROXIES: host,
  };
}
