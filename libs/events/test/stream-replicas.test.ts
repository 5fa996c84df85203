import { freePort, startNats } from '@scheduling/embedded';
import { eventually, testLogger } from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectBroker, inspectNats } from '../src/index.ts';

const logger = testLogger('events-test');
const resources = new AsyncDisposableStack();
let url: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-test-nats-cluster-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const ports = [await freePort(), await freePort(), await freePort()];
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`);
  const servers = await Promise.all(
    ports.map((port) => startNats({ dataDir: join(folder, String(port)), cluster: { port, routes } })),
  );
  for (const server of servers) resources.use(server);
  url = servers[0]!.url;
});
afterAll(() => resources.disposeAsync());

/** Connects like a service that is configured to keep the stream on this many servers. */
async function serve(streamReplicas: number, name = 'identity'): Promise<void> {
  await using broker = connectBroker({ url, name, logger, streamReplicas });
  // The servers of a cluster elect a leader for streams, and do not answer until then.
  await eventually(() => broker.jetStream(AbortSignal.timeout(5_000)));
}

it('identity adds missing replicas to the stream, and removes none', async () => {
  await serve(1);
  await eventually(async () =>
    expect(await inspectNats({ url })).toMatchObject({ stream: { clustered: true, config: { num_replicas: 1 } } }),
  );
  await serve(3, 'calendar');
  expect(await inspectNats({ url })).toMatchObject({ stream: { config: { num_replicas: 1 } } });
  await serve(3);
  await eventually(async () =>
    expect(await inspectNats({ url })).toMatchObject({ stream: { config: { num_replicas: 3 }, laggingReplicas: [] } }),
  );
  await serve(1);
  await eventually(async () =>
    expect(await inspectNats({ url })).toMatchObject({ stream: { config: { num_replicas: 3 } } }),
  );
});
