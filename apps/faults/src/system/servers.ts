import { freePort, startNats, startPostgres } from '@scheduling/embedded';
import { createTestUsers, type TestUsers } from '@scheduling/testing/test-users';
import { join } from 'node:path';
import { createDatabasePair, type DatabasePair } from './database-pair.ts';
import { createDatabaseServer, type Databases, type DatabaseServer } from './database-server.ts';
import { type Disk, openDisk } from './disk.ts';
import { createEventCluster, type EventCluster } from './event-cluster.ts';
import { createEventServer, type Events, type EventServer } from './event-server.ts';
import { type MailServer, startMailServer } from './mail-server.ts';

/** What the services need. */
export interface Servers {
  postgres: Databases;
  nats: Events;
  mail: MailServer;
  users: TestUsers;
  disks: readonly Disk[];
}

/** One Postgres and one NATS. */
export interface SingleServers extends Servers {
  postgres: DatabaseServer;
  nats: EventServer;
}

/** A Postgres with a synchronous standby, and a cluster of three NATS servers, as in production. */
export interface ReplicatedServers extends Servers {
  postgres: DatabasePair;
  nats: EventCluster;
}

export interface ServersByKind {
  single: SingleServers;
  replicated: ReplicatedServers;
}

export type ServerKind = keyof ServersByKind;

export const serverKinds = ['single', 'replicated'] as const satisfies readonly ServerKind[];

const clusterSize = 3;

/** Starts servers that store their data below this folder. They end with the stack. */
export async function startServers(kind: ServerKind, folder: string, starting: AsyncDisposableStack): Promise<Servers> {
  const disks = {
    postgres: starting.use(await openDisk(join(folder, 'postgres-disk'), 4_096)),
    nats: starting.use(await openDisk(join(folder, 'nats-disk'), kind === 'single' ? 512 : clusterSize * 512)),
  };
  const users = createTestUsers();
  const start = kind === 'single' ? startSingle : startReplicated;
  return {
    ...(await start(disks, users, starting)),
    mail: starting.use(await startMailServer()),
    users,
    disks: Object.values(disks),
  };
}

type DataServers = Pick<Servers, 'postgres' | 'nats'>;

async function startSingle(
  disks: Record<'postgres' | 'nats', Disk>,
  users: TestUsers,
  starting: AsyncDisposableStack,
): Promise<DataServers> {
  const postgres = starting.use(
    await createDatabaseServer(disks.postgres, (port) =>
      startPostgres({ dataDir: disks.postgres.path, port, durable: false }),
    ),
  );
  const nats = starting.use(
    await createEventServer(
      disks.nats,
      (port) => startNats({ dataDir: disks.nats.path, port, users: users.settings }),
      (url) => users.urlFor('test', url),
    ),
  );
  return { postgres, nats };
}

async function startReplicated(
  disks: Record<'postgres' | 'nats', Disk>,
  users: TestUsers,
  starting: AsyncDisposableStack,
): Promise<DataServers> {
  const postgres = starting.use(await createDatabasePair(disks.postgres.path));
  const members = await Promise.all(
    Array.from({ length: clusterSize }, async (_, index) => ({
      dataDir: join(disks.nats.path, String(index)),
      port: await freePort(),
      clusterPort: await freePort(),
    })),
  );
  const routes = members.map(({ clusterPort }) => `nats://127.0.0.1:${clusterPort}`);
  const nats = starting.use(
    await createEventCluster(
      members.map(
        ({ dataDir, port, clusterPort }) =>
          () =>
            startNats({ dataDir, port, users: users.settings, cluster: { port: clusterPort, routes } }),
      ),
      (url) => users.urlFor('test', url),
    ),
  );
  return { postgres, nats };
}
