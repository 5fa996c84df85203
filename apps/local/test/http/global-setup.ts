import { chooseServers, createTestDatabase, startTestNats, startTestPostgres } from '@scheduling/testing';
import type { TestProject } from 'vitest/node';
import { databaseVariable } from '../../src/config.ts';
import { databaseServices } from '../../src/service-table.ts';
import type { StackInfo } from '../../src/stack-file.ts';
import { startTestStack } from './start-test-stack.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The one stack that the files of this project share. */
    stack: StackInfo;
  }
}

/** Starts the one stack of the project and returns what ends it. Files make CRMs of their own, so they do not see each other. */
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

/** The addresses of what the stack then need not start by itself. */
async function startContainers(starting: AsyncDisposableStack): Promise<NodeJS.ProcessEnv> {
  const postgres = starting.use(await startTestPostgres('containers'));
  const nats = starting.use(await startTestNats('containers'));
  const databases = databaseServices.map(async (service) => [databaseVariable(service), await createTestDatabase(postgres.url('postgres'))] as const);
  return { NATS_URL: nats.url, ...Object.fromEntries(await Promise.all(databases)) };
}
