import { createDatabase } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import type { CustomerDependencies } from '../src/customer/customer.ts';
import { migrateCustomerDatabase } from '../src/db/migrate.ts';
import type { CustomerSchema } from '../src/db/schema.ts';
import { startErasureDriver } from '../src/erasure/drive-erasures.ts';

const logger = testLogger('erasure-driver-test');

it('commits nothing while no erasure is due, and republishes one that is', async () => {
  const url = await createMigratedDatabase('customer', migrateCustomerDatabase);
  await using database = createDatabase<CustomerSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  let connections = 0;
  let commits = 0;
  database.pool.on('acquire', () => (connections += 1));
  database.onCommit(() => (commits += 1));
  // No erasure reaches the step that calls other services.
  await using _driver = startErasureDriver({ database } as CustomerDependencies, logger);
  await eventually(() => expect(connections).toBeGreaterThanOrEqual(2));
  expect(commits).toBe(0);

  const overdue = {
    crmId: 'one',
    customerId: crypto.randomUUID(),
    ignoreFutureAppointments: true,
    state: 'requested' as const,
    publishedAt: new Date(0),
  };
  await database.kysely.insertInto('erasure').values(overdue).execute();
  await eventually(async () =>
    expect(await database.kysely.selectFrom('outbox').select('id').execute()).toHaveLength(1),
  );
});

it('republishes an erasure about 5 seconds after it was last published', async () => {
  const url = await createMigratedDatabase('customer', migrateCustomerDatabase);
  await using driven = createDatabase<CustomerSchema>({ url, applicationName: 'driver', logger, ...longTimeout });
  await using database = createDatabase<CustomerSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  let looked = 0;
  driven.pool.on('release', () => (looked += 1));
  await using _driver = startErasureDriver({ database: driven } as CustomerDependencies, logger);
  await eventually(() => expect(looked).toBe(1));
  // When the driver looks the next time, it is not due, and soon will be.
  const publishedAt = sql<Date>`clock_timestamp() + interval '500 ms'`;
  await database.kysely
    .insertInto('erasure')
    .values({
      crmId: 'crm',
      customerId: crypto.randomUUID(),
      ignoreFutureAppointments: true,
      state: 'requested',
      publishedAt,
    })
    .execute();
  const { publishedAt: first } = await database.kysely
    .selectFrom('erasure')
    .select('publishedAt')
    .executeTakeFirstOrThrow();
  await eventually(async () => {
    const { createdAt } = await database.kysely.selectFrom('outbox').select('createdAt').executeTakeFirstOrThrow();
    expect(createdAt.getTime() - first.getTime()).toBeLessThan(7_000);
  });
});
