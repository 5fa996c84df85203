import { jetstreamManager, type JetStreamManager, type StoredMsg } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type NatsServer, signalProcess } from '@scheduling/embedded';
import { streamName } from '@scheduling/events';
import type { Random } from '@scheduling/testing/random';
import { whilePaused } from '@scheduling/testing/while-paused';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Disk } from './disk.ts';

/** NATS with its stream. */
export interface Events extends AsyncDisposable {
  /** Without a user. */
  url: string;
  /** Of the servers that run, each of which serves every client. */
  readonly ports: readonly number[];
  /** As a user who may do everything, past the proxies. Rejects if NATS is away, or does not do it. */
  manage<Result>(use: Manage<Result>): Promise<Result>;
}

type Manage<Result> = (manager: JetStreamManager, connection: NatsConnection) => Promise<Result>;

/** A single server. */
export interface EventServer extends Events {
  readonly pid: number;
  /** Kills it, does something, and starts it again. */
  whileDown(action: () => Promise<unknown>): Promise<void>;
  /** Starts it again without the stream, all of whose events are lost. */
  loseStore(): Promise<void>;
  whileHanging(action: () => Promise<unknown>): Promise<void>;
  /**
   * Does something while there is no room on the disk, and starts NATS again, as its liveness probe does when it has
   * given up. False if the disk cannot be filled.
   */
  whileDiskFull(action: () => Promise<unknown>): Promise<boolean>;
}

export async function createEventServer(
  disk: Disk,
  start: (port?: number) => Promise<NatsServer>,
  urlOfManager: (url: string) => string,
): Promise<EventServer> {
  let server = await start();
  const { url, port } = server;
  // Two faults may want the same server.
  const oneByOne = pLimit(1);
  const whileDown: EventServer['whileDown'] = (action) =>
    oneByOne(async () => {
      signalProcess(server.pid, 'SIGKILL');
      await server.exited;
      await action();
      server = await start(port);
    });
  return {
    url,
    ports: [port],
    get pid() {
      return server.pid;
    },
    whileDown,
    loseStore: () => whileDown(() => rm(join(disk.path, 'nats'), { recursive: true, force: true })),
    whileHanging: (action) => oneByOne(async () => void (await whilePaused([server.pid], action))),
    whileDiskFull: async (action) => {
      if (!(await disk.fill())) return false;
      await action();
      await disk.free();
      await whileDown(async () => undefined);
      return true;
    },
    manage: createManage(() => [urlOfManager(url)]),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** @param urls of the servers that run, with the same user */
export function createManage(urls: () => readonly string[]): Events['manage'] {
  return async (use) => {
    const addresses = urls().map((url) => new URL(url));
    const { username, password } = addresses[0]!;
    const servers = addresses.map(({ host }) => host);
    const connection = await connect({ servers, user: username, pass: password });
    try {
      return await use(await jetstreamManager(connection), connection);
    } finally {
      await connection.close();
    }
  };
}

/** Publishes the newest events once more, in any order. For JetStream they are other messages. */
export async function republish(
  manager: JetStreamManager,
  connection: NatsConnection,
  { count, random }: { count: number; random: Random },
): Promise<void> {
  const { first_seq: first, last_seq: last } = (await manager.streams.info(streamName)).state;
  const from = Math.max(first, last - count + 1);
  const limit = pLimit(20);
  const sequences = Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => from + index);
  const messages = await Promise.all(
    sequences.map((seq) => limit(() => manager.streams.getMessage(streamName, { seq }))),
  );
  for (const message of random.shuffled(messages.filter((each) => each !== null))) publishAgain(connection, message);
  await connection.flush();
}

function publishAgain(connection: NatsConnection, { subject, data, header: headers }: StoredMsg): void {
  headers.delete('Nats-Msg-Id');
  connection.publish(subject, data, { headers });
}
