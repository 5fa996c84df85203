import { freePort, type NatsServer, startNats } from '@scheduling/embedded';
import { eventually, testLogger } from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Broker, connectBroker, inspectNats } from '../src/index.ts';

const logger = testLogger('events-test');
const names = ['first', 'second', 'third'] as const;
let resources: AsyncDisposableStack;
let start: (name: (typeof names)[number]) => Promise<NatsServer>;
/** Names all three servers, with a user for all of them. */
let url: string;

beforeEach(async () => {
  resources = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-test-nats-servers-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const newPorts = async () => Promise.all(names.map(async (name) => [name, await freePort()] as const));
  const [ports, clusterPorts] = [Object.fromEntries(await newPorts()), Object.fromEntries(await newPorts())];
  const routes = Object.values(clusterPorts).map((port) => `nats://127.0.0.1:${port}`);
  const configuration = 'authorization { users = [ { user: identity, password: "s3,cret" } ] }';
  start = async (name) =>
    resources.use(
      await startNats({
        dataDir: join(folder, name),
        port: ports[name]!,
        users: { configuration, environment: {} },
        cluster: { port: clusterPorts[name]!, routes },
      }),
    );
  url = `nats://identity:s3,cret@${names.map((name) => `127.0.0.1:${ports[name]}`).join(',')}`;
});
afterEach(() => {
  vi.useRealTimers();
  return resources.disposeAsync();
});

const open = (): Broker => resources.use(connectBroker({ url, name: 'identity', logger, streamReplicas: 3 }));

/** Stops at once, and nobody restarts it. */
async function kill(server: NatsServer): Promise<void> {
  process.kill(server.pid, 'SIGKILL');
  await server.exited;
}

/** The servers of a cluster elect a leader for streams, and do not answer until then. */
function publishes(broker: Broker): Promise<void> {
  return eventually(async () => {
    const { publisher } = await broker.jetStream(AbortSignal.timeout(5_000));
    expect(publisher).toBeDefined();
  });
}

it('a service connects although the first server is down, and goes on with another when its own is killed', async () => {
  const second = await start('second');
  const broker = open();
  await eventually(() => expect(broker.connected).toBe(true));
  await Promise.all([start('first'), start('third')]);
  await publishes(broker);
  const { promise: reconnected, resolve } = Promise.withResolvers<void>();
  broker.onReconnect(resolve);
  await kill(second);
  await reconnected;
  await publishes(broker);
  await eventually(async () =>
    expect(await inspectNats({ url })).toMatchObject({ requiresUser: true, stream: { config: { num_replicas: 3 } } }),
  );
});

it.each(names)('every server gets its turn although the clock was set back: %s', async (last) => {
  const second = await start('second');
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 });
  const broker = open();
  await eventually(() => expect(broker.connected).toBe(true));
  await kill(second);
  await eventually(() => expect(broker.connected).toBe(false));
  vi.useRealTimers();
  await start(last);
  await eventually(() => expect(broker.connected).toBe(true));
});
