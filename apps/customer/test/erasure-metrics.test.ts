import { createDatabase } from '@scheduling/postgres';
import { createMetrics } from '@scheduling/runtime';
import { createMigratedDatabase, longTimeout, sumSamples, testLogger } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { migrateCustomerDatabase } from '../src/db/migrate.ts';
import type { CustomerSchema } from '../src/db/schema.ts';
import { createErasureMetrics } from '../src/erasure/erasure-metrics.ts';

const logger = testLogger('customer');

it('reports how many erasures are open and the age of the oldest', async () => {
  const url = await createMigratedDatabase('customer', migrateCustomerDatabase);
  await using database = createDatabase<CustomerSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  const metrics = createMetrics('customer');
  createErasureMetrics(metrics, database);
  const read = async () => {
    const text = await metrics.metrics();
    return {
      open: sumSamples(text, 'scheduling_erasures_open'),
      seconds: sumSamples(text, 'scheduling_erasure_oldest_open_seconds')!,
    };
  };
  expect(await read()).toEqual({ open: 0, seconds: 0 });
  const begun = (secondsAgo: number, state: 'requested' | 'complete') => ({
    crmId: 'crm',
    customerId: randomUUID(),
    ignoreFutureAppointments: true,
    requestedAt: new Date(Date.now() - secondsAgo * 1_000),
    state,
  });
  await database.kysely
    .insertInto('erasure')
    .values([begun(900, 'complete'), begun(90, 'requested'), begun(5, 'requested')])
    .execute();
  const { open, seconds } = await read();
  expect(open).toBe(2);
  expect(seconds).toBeGreaterThanOrEqual(89);
  expect(seconds).toBeLessThan(800);
});
