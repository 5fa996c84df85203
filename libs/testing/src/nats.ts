import { type NatsServer, startNats } from '@scheduling/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { ServerKind } from './choose-servers.ts';
import type { TestNats } from './test-nats.ts';
import { createTestUsers, noUsers, type TestUsers } from './test-users.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The kind of servers in this test run: embedded ones, or containers. */
    servers: ServerKind;
  }
}

interface TestNatsOptions {
  /** For a global setup, to which nothing is injected. */
  servers?: ServerKind;
  /** False: the server knows no users, and everybody may do everything. */
  users?: boolean;
}

/**
 * Starts a nats-server for one test file: the stream is global, so files sharing a server would receive each other's
 * events. It can be stopped and restarted, with or without its data.
 */
export async function startTestNats({
  servers = inject('servers'),
  users = true,
}: TestNatsOptions = {}): Promise<TestNats> {
  const testUsers = users ? createTestUsers() : noUsers;
  if (servers === 'embedded') return startEmbeddedNats(testUsers);
  const { startNatsContainer } = await import('./containers/nats-container.ts');
  return startNatsContainer(testUsers);
}

async function startEmbeddedNats({ settings: users, urlFor }: TestUsers): Promise<TestNats> {
  const dataDir = await mkdtemp(join(tmpdir(), 'scheduling-test-nats-'));
  let server: NatsServer | undefined = await startNats({ dataDir, users });
  const { url, port } = server;
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };
  return {
    url: (user) => urlFor(user, url),
    stop,
    start: async () => {
      server = await startNats({ dataDir, port, users });
    },
    startEmpty: async () => {
      await rm(dataDir, { recursive: true, force: true });
      server = await startNats({ dataDir, port, users });
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
