import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { type ChildExit, type OnSpawn, spawnChild, waitUntilReady } from './child.ts';
import { freePort } from './free-port.ts';
import { findNatsServer } from './nats-binary.ts';

export interface NatsServer extends AsyncDisposable {
  /** By which the other servers of a cluster know it. */
  name: string;
  /** The address, without a user. */
  url: string;
  port: number;
  pid: number;
  exited: Promise<ChildExit>;
  stop(): Promise<void>;
}

export interface NatsOptions {
  /** JetStream's files are stored in `<dataDir>/nats`. */
  dataDir: string;
  port?: number;
  /** Who may connect: a configuration of nats-server, and the variables that it mentions. If not given, everybody. */
  users?: { configuration: string; environment: Record<string, string> };
  /**
   * Makes it a member of a cluster of servers that replicate streams. When it is started again, it must have the same
   * port: the others recognise it by a name that is made of it. Clients do not learn the addresses of the others.
   */
  cluster?: { port: number; routes: string[] };
  /** Called with progress messages while the program is being downloaded. */
  log?: (message: string) => void;
  onSpawn?: OnSpawn;
}

const startTimeoutMs = 20_000;
const stopTimeoutMs = 3_000;

/**
 * Starts nats-server with JetStream on disk, on 127.0.0.1 only. Rejects with a remedy if there is no nats-server and
 * none can be downloaded.
 */
export async function startNats({
  dataDir,
  port: wantedPort,
  users,
  cluster,
  log,
  onSpawn,
}: NatsOptions): Promise<NatsServer> {
  const binary = await findNatsServer({ fallbackCacheDir: join(dataDir, 'cache'), log });
  const port = wantedPort ?? (await freePort());
  const storeDir = join(dataDir, 'nats');
  const name = `scheduling-${cluster?.port ?? randomUUID()}`;
  await mkdir(storeDir, { recursive: true, mode: 0o700 });
  const configuration = join(storeDir, 'nats.conf');
  await writeFile(configuration, `server_name: ${name}\n${users?.configuration ?? ''}`, { mode: 0o600 });
  const addresses = ['--addr', '127.0.0.1', '--port', String(port), ...clusterArguments(cluster)];
  const child = await spawnChild({
    command: binary,
    args: ['--config', configuration, '--jetstream', '--store_dir', storeDir, ...addresses],
    cwd: storeDir,
    environment: { PATH: process.env.PATH, ...users?.environment },
    logFile: join(dataDir, 'logs', 'nats.log'),
    onSpawn,
  });
  await waitUntilReady(child, () => offersJetStream(port, name), startTimeoutMs);
  const stop = (): Promise<void> => child.stop('SIGTERM', stopTimeoutMs);
  return {
    name,
    url: `nats://127.0.0.1:${port}`,
    port,
    pid: child.pid,
    exited: child.exited,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function clusterArguments(cluster: NatsOptions['cluster']): string[] {
  if (cluster === undefined) return [];
  return [
    '--cluster_name',
    'scheduling',
    '--cluster',
    `nats://127.0.0.1:${cluster.port}`,
    '--routes',
    cluster.routes.join(','),
    '--no_advertise',
  ];
}

/**
 * The server starts every connection with a line that contains its name, which distinguishes it from another one on the
 * port, and its capabilities.
 */
async function offersJetStream(port: number, name: string): Promise<boolean> {
  const socket = createConnection({ host: '127.0.0.1', port });
  socket.setTimeout(1_000, () => socket.destroy(new Error('no greeting')));
  try {
    for await (const chunk of socket) {
      const greeting = String(chunk);
      return greeting.includes(`"server_name":"${name}"`) && greeting.includes('"jetstream":true');
    }
    return false;
  } finally {
    socket.destroy();
  }
}
