import { startPostgres, withClient } from '@scheduling/embedded';
import { createMetrics } from '@scheduling/runtime';
import { createTestDatabase, eventually, sumSamples, testLogger } from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createDatabase, measureArchive } from '../src/index.ts';

const logger = testLogger('archive-metrics-test');

function watchAge(url: string) {
  const metrics = createMetrics('test');
  const database = createDatabase({ url, applicationName: 'test', logger });
  measureArchive(database, metrics);
  return {
    read: async () => sumSamples(await metrics.metrics(), 'scheduling_postgres_archive_age_seconds'),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

describe('the age of the archive', () => {
  it('is absent if the server does not archive', async () => {
    await using age = watchAge(await createTestDatabase());
    expect(await age.read()).toBeUndefined();
  });

  it('is that of the server until it has archived a file, and then that of the newest one', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'archive-metrics-test-'));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(dataDir, { recursive: true, force: true }));
    const startedAtMs = performance.now();
    const postgres = stack.use(await startPostgres({ dataDir, durable: false, settings: { archive_mode: 'on' } }));
    // As the owner of the database, who is no superuser.
    const age = stack.use(watchAge(await postgres.createDatabase('service')));
    const execute = (...statements: string[]) =>
      withClient(postgres.url('postgres'), async (client) => {
        for (const statement of statements) await client.query(statement);
      });
    const secondsSince = (ms: number): number => (performance.now() - ms) / 1_000;

    const runningAtMs = performance.now();
    await execute('SELECT pg_switch_wal()');
    const runningSeconds = secondsSince(runningAtMs);
    const unarchived = await age.read();
    expect(unarchived).toBeGreaterThan(runningSeconds);
    expect(unarchived).toBeLessThan(secondsSince(startedAtMs));

    const archivingAtMs = performance.now();
    await execute(`ALTER SYSTEM SET archive_command = 'true'`, 'SELECT pg_reload_conf()');
    await eventually(async () => expect(await age.read()).toBeLessThan(secondsSince(archivingAtMs)));
  });
});
