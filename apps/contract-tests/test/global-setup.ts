import { chooseServers, createTestDatabase, startTestNats, startTestPostgres } from '@scheduling/testing';
import type { TestProject } from 'vitest/node';
import { databaseServices, databaseVariable } from '@scheduling/stack';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';

/**
 * Starts the one stack of the project and returns a function that stops it. Each file creates its own CRMs, so files do
 * not see each other's data.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using starting = new AsyncDisposableStack();
  const servers = await chooseServers(process.env['TEST_WITH']);
  const stack = starting.use(await startTestStack(servers === 'containers' ? await startContainers(starting) : {}));
  project.provide('stack', stack.info);
  const started = starting.move();
  return async () => {
    const errors = await stack.loggedErrors();
    await started.disposeAsync();
    if (errors.length > 0) throw new Error(`the services logged errors:\n${errors.join('\n')}`);
  };
}

/** The addresses of servers that the stack does not have to start itself. */
async function startContainers(starting: AsyncDisposableStack): Promise<NodeJS.ProcessEnv> {
  const postgres = starting.use(await startTestPostgres('containers'));
  const nats = starting.use(await startTestNats({ servers: 'containers', users: false }));
  const databases = databaseServices.map(
    async (service) => [databaseVariable(service), await createTestDatabase(postgres.url('postgres'))] as const,
  );
  return { NATS_URL: nats.url('test'), ...Object.fromEntries(await Promise.all(databases)) };
}
