import { chooseServers, startTestNats, startTestPostgres } from '@scheduling/testing';
import type { TestProject } from 'vitest/node';
import { startNeighbours } from './neighbours.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The addresses of the services that calendar calls. All files share them. */
    neighbours: { identity: string; customer: string };
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using starting = new AsyncDisposableStack();
  const servers = await chooseServers(process.env['TEST_WITH']);
  const postgres = starting.use(await startTestPostgres(servers));
  const nats = starting.use(await startTestNats({ servers }));
  const { identity, customer } = starting.use(await startNeighbours(nats.url, postgres.url('database')));
  project.provide('neighbours', { identity: identity.address, customer: customer.address });
  const started = starting.move();
  return () => started.disposeAsync();
}
