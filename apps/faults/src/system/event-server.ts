import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { type NatsServer, signalProcess } from '@scheduling/embedded';
import { whilePaused } from '@scheduling/testing/while-paused';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';

/** NATS with its stream. */
export interface EventServer extends AsyncDisposable {
  /** Without a user. */
  url: string;
  /** Kills it, does something, and starts it again. */
  whileDown(action: () => Promise<unknown>): Promise<void>;
  /** Starts it again without the stream, all of whose events are lost. */
  loseStore(): Promise<void>;
  whileHanging(action: () => Promise<unknown>): Promise<void>;
  /** As a user who may do everything, past the proxies. */
  manage<Result>(use: (manager: JetStreamManager) => Promise<Result>): Promise<Result>;
}

export async function createEventServer(
  folder: string,
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
    whileDown,
    loseStore: () => whileDown(() => rm(join(folder, 'nats'), { recursive: true, force: true })),
    whileHanging: (action) => oneByOne(async () => void (await whilePaused([server.pid], action))),
    manage: async (use) => {
      const { host, username, password } = new URL(urlOfManager(url));
      const connection = await connect({ servers: host, user: username, pass: password });
      try {
        return await use(await jetstreamManager(connection));
      } finally {
        await connection.close();
      }
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
