import { expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';
import { startOperationsServer } from './operations-server.ts';

/** Starts a server with one check, or one dependency, which fails on demand. */
async function start(kind: 'readiness' | 'dependencies', patienceMs?: number) {
  const metrics = createMetrics('test');
  let works = true;
  const check = async (): Promise<void> => {
    if (!works) throw new Error('away');
  };
  const checks = { readiness: {}, [kind]: { thing: check } };
  const operations = await startOperationsServer({ host: '127.0.0.1', port: 0, metrics, patienceMs, ...checks });
  const ask = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${operations.port}/readyz`)).text().then((text) => text.trim());
  const read = async (name: string): Promise<string | undefined> =>
    new RegExp(`${name}\\{[^}]*\\} (\\d)`).exec(await metrics.metrics())?.[1];
  return {
    fail: () => (works = false),
    heal: () => (works = true),
    serve: operations.serve,
    drain: operations.drain,
    answers: async () => [await ask(), await read('scheduling_ready'), await read('scheduling_dependency_available')],
    [Symbol.asyncDispose]: operations[Symbol.asyncDispose],
  };
}

it('is ready from its start to its end, as long as the checks pass', async () => {
  await using server = await start('readiness');
  expect(await server.answers()).toEqual(['not ready: starting', '0', undefined]);
  server.serve();
  expect(await server.answers()).toEqual(['ok', '1', undefined]);
  server.fail();
  expect(await server.answers()).toEqual(['not ready: thing', '0', undefined]);
  server.heal();
  server.drain();
  expect(await server.answers()).toEqual(['not ready: draining', '0', undefined]);
});

it('is ready without a dependency that it has had, and says so', async () => {
  await using server = await start('dependencies');
  server.fail();
  expect(await server.answers()).toEqual(['not ready: starting', '0', '0']);
  server.serve();
  expect(await server.answers()).toEqual(['not ready: thing', '0', '0']);
  server.heal();
  expect(await server.answers()).toEqual(['ok', '1', '1']);
  server.fail();
  expect(await server.answers()).toEqual(['ok, but without thing', '1', '0']);
});

it('is not ready once it has been without a dependency for too long', async () => {
  await using server = await start('dependencies', 0);
  server.serve();
  expect(await server.answers()).toEqual(['ok', '1', '1']);
  server.fail();
  expect(await server.answers()).toEqual(['not ready: thing', '0', '0']);
  server.heal();
  expect(await server.answers()).toEqual(['ok', '1', '1']);
});
