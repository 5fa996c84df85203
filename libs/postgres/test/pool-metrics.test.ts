import { createMetrics } from '@scheduling/runtime';
import { createTestDatabase, eventually, sumSamples, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createDatabase } from '../src/index.ts';

const logger = testLogger('pool-metrics-test');

describe('the metrics of a pool', () => {
  it('show how many connections it has, and how many callers wait for one', async () => {
    const metrics = createMetrics('test');
    const url = await createTestDatabase();
    await using database = createDatabase({ url, applicationName: 'test', logger, metrics, maxConnections: 1 });
    const value = async (name: string, labels = {}): Promise<number | undefined> =>
      sumSamples(await metrics.metrics(), `scheduling_postgres_pool_${name}`, labels);
    const gate = Promise.withResolvers<void>();
    const holding = database.transaction(() => gate.promise);
    await eventually(async () => expect(await value('connections', { state: 'used' })).toBe(1));
    const waiting = sql`SELECT 1`.execute(database.kysely);
    for (const work of [holding, waiting]) work.catch(() => undefined);
    await eventually(async () => expect(await value('waiting')).toBe(1));
    expect(await value('connections_max')).toBe(1);
    gate.resolve();
    await Promise.all([holding, waiting]);
    expect(await value('waiting')).toBe(0);
    expect([await value('connections', { state: 'used' }), await value('connections', { state: 'idle' })]).toEqual([
      0, 1,
    ]);
    expect(await value('wait_seconds_count', { outcome: 'connected' })).toBe(2);
  });

  it('count operations that got no connection', async () => {
    const metrics = createMetrics('test');
    await using database = createDatabase({
      url: 'postgres://nobody@127.0.0.1:1/nothing',
      applicationName: 'test',
      logger,
      metrics,
    });
    await expect(sql`SELECT 1`.execute(database.kysely)).rejects.toThrow(/./);
    expect(
      sumSamples(await metrics.metrics(), 'scheduling_postgres_pool_wait_seconds_count', { outcome: 'failed' }),
    ).toBe(1);
  });
});
