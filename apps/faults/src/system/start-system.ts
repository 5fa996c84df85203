import { signalProcess } from '@scheduling/embedded';
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
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openSystemLink, type SystemLink } from './link.ts';
import type { Orders } from './orders.ts';
import { type ServerKind, type Servers, type ServersByKind, startServers } from './servers.ts';
import { createServiceGroup, type Replica, type ServiceGroup } from './service-group.ts';

/** The whole system, with a proxy on every way between two of its processes, and the means to break each part of it. */
export interface System extends AsyncDisposable, Pick<Servers, 'postgres' | 'nats' | 'mail'> {
  /** The gateway as clients reach it. */
  gatewayUrl: string;
  groups: Record<Service, ServiceGroup>;
  /**
   * By `<caller>-<called>`: `calendar-postgres`, `calendar-nats`, `notification-smtp`, `client-gateway`, `client-page`,
   * and for each replica `calendar-identity-0`.
   */
  links: Map<string, SystemLink>;
  /** Gives a process its orders, which replace earlier ones. */
  order(replica: Replica, orders: Orders): Promise<void>;
  /** The data of Postgres and NATS, and the logs. */
  folder: string;
  /** Leaves the folder where it is, for whoever looks for the cause of a violation. */
  keepFolder(): void;
}

/** One with servers of this kind. */
export type SystemWith<Kind extends ServerKind> = System & Pick<ServersByKind[Kind], 'postgres' | 'nats'>;

interface SystemOptions<Kind extends ServerKind> {
  servers: Kind;
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
export async function startSystem<Kind extends ServerKind>({
  servers: kind,
  root,
  nodeOptions,
  onProgress,
  signal,
}: SystemOptions<Kind>): Promise<SystemWith<Kind>> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-faults-'));
  let isKept = false;
  starting.defer(async () => {
    if (!isKept) await rm(folder, { recursive: true, force: true });
  });
  onProgress('starting Postgres, NATS and the mail server');
  const { disks, postgres, nats, mail, users } = await startServers(kind, folder, starting);
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
  const inherited = environmentOf(nodeOptions ?? crashPointsOf(root, orders), kind);
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
      for (const disk of disks) disk.keep();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
    // The servers are of the kind that was asked for.
  } as System as SystemWith<Kind>;
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
  const through = async (name: string, url: string, targets: () => readonly number[]): Promise<string> => {
    const address = new URL(url);
    address.port = String(await link(name, targets));
    return address.href;
  };
  const { postgres, nats, mail } = servers;
  const addresses = new Map<string, string>();
  const databaseUrls = {} as Surroundings['databaseUrls'];
  const natsUrls = {} as Surroundings['natsUrls'];
  for (const caller of services) {
    for (const called of calls[caller]) addresses.set(`${caller} ${called}`, await linkReplicas(caller, called));
  }
  for (const service of natsServices)
    natsUrls[service] = await through(`${service}-nats`, servers.natsUrlOf(service), () => nats.ports);
  for (const service of databaseServices) {
    const url = await postgres.createDatabase(service);
    databaseUrls[service] = await through(`${service}-postgres`, url, () => postgres.ports);
  }
  const chosen = await choosePorts(await link('client-gateway', portsOf('gateway')));
  const page = { ...chosen.ports.page, main: await link('client-page', portsOf('page')) };
  return {
    ...chosen,
    ports: { ...chosen.ports, page },
    databaseUrls,
    natsUrls,
    smtpUrl: await through('notification-smtp', mail.url, () => [Number(new URL(mail.url).port)]),
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
function environmentOf(nodeOptions: string, servers: ServerKind): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return {
    PATH,
    HOME,
    NODE_COMPILE_CACHE,
    NODE_OPTIONS: nodeOptions,
    MAILS_PER_HOUR_AND_CRM: '0',
    MAILS_PER_HOUR_AND_RECIPIENT: '0',
    TRUSTED_PROXIES: host,
    ...(servers === 'replicated' && { NATS_STREAM_REPLICAS: '3' }),
  };
}
