import { freePort } from '@scheduling/embedded';
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers';
import type { TestNats } from '../test-nats.ts';
import type { TestUsers } from '../test-users.ts';

const clientPort = 4222;
const configuration = '/etc/nats/users.conf';
const stopTimeoutMs = 5_000;

/** NATS from the image used in production. A stopped container keeps its data, and a new one starts without any. */
export async function startNatsContainer({ settings, urlFor }: TestUsers): Promise<TestNats> {
  // Not a port picked by the engine: it would pick a different one at the next start.
  const port = await freePort();
  let container = await runContainer(port, settings);
  return {
    url: (user) => urlFor(user, `nats://${container.getHost()}:${port}`),
    // The container's own stop() may be called only once.
    stop: async () => {
      const { container: engine } = await getContainerRuntimeClient();
      await engine.stop(engine.getById(container.getId()), { timeout: stopTimeoutMs });
    },
    start: () => container.restart(),
    startEmpty: async () => {
      await container.stop();
      container = await runContainer(port, settings);
    },
    [Symbol.asyncDispose]: async () => {
      await container.stop();
    },
  };
}

function runContainer(port: number, settings: TestUsers['settings']): Promise<StartedTestContainer> {
  return new GenericContainer('nats:2.12-alpine')
    .withEnvironment(settings?.environment ?? {})
    .withCopyContentToContainer([{ content: settings?.configuration ?? '', target: configuration }])
    .withCommand(['--config', configuration, '--jetstream', '--store_dir', '/data'])
    .withExposedPorts({ container: clientPort, host: port })
    .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
    .start();
}
