import { type NatsServer, startNats } from '@scheduling/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { ServerKind } from './choose-servers.ts';
import type { TestNats } from './test-nats.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The kind of servers in this test run: embedded ones, or containers. */
    servers: ServerKind;
  }
}

/**
 * Starts a nats-server for one test file: the stream is global, so files sharing a server would receive each other's events.
 * It can be stopped and restarted, with or without its data.
 *
 * @param servers for a global setup, to which nothing is injected
 */
export async function startTestNats(servers = inject('servers')): Promise<TestNats> {
  if (servers === 'embedded') return startEmbeddedNats();
  const { startNatsContainer } = await import('./containers/nats-container.ts');
  return startNatsContainer();
}

async function startEmbeddedNats(): Promise<TestNats> {
  const dataDir = await mkdtemp(join(tmpdir(), 'scheduling-test-nats-'));
  let server: NatsServer | undefined = await startNats({ dataDir });
  const { url, port } = server;
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };
  return {
    url,
    stop,
    start: async () => {
      server = await startNats({ dataDir, port });
    },
    startEmpty: async () => {
      await rm(dataDir, { recursive: true, force: true });
      server = await startNats({ dataDir, port });
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
