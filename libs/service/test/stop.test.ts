import { type MessagingSchema, messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type IdempotencySchema, migrateDatabase } from '@scheduling/postgres';
import { readEnvironment } from '@scheduling/runtime';
import { createTestDatabase, startTestNats, testLogger } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { createService, readServiceSettings } from '../src/index.ts';

const logger = testLogger('service-test');
const migrations = [idempotencyMigrations, messagingMigrations];

it('ends all background work at the same time, because each part may take as long as a stop', async () => {
  await using nats = await startTestNats();
  const databaseUrl = await createTestDatabase();
  await migrateDatabase({ url: databaseUrl, sets: migrations, logger });
  const ports = { GRPC_PORT: '0', ADMIN_PORT: '0', METRICS_PORT: '0' };
  const settings = readEnvironment(
    { LISTEN_HOST: '127.0.0.1', ...ports, DATABASE_URL: databaseUrl, NATS_URL: nats.url('customer') },
    readServiceSettings,
  );
  const names = ['first', 'second', 'third'];
  const ending: string[] = [];
  const allEnd = Promise.withResolvers<void>();
  const workNamed = (name: string): AsyncDisposable => ({
    [Symbol.asyncDispose]: () => {
      ending.push(name);
      if (ending.length === names.length) allEnd.resolve();
      return allEnd.promise;
    },
  });
  const service = await createService<IdempotencySchema & MessagingSchema>({
    name: 'customer',
    settings,
    migrations,
    logger,
    compose: ({ use }) => {
      for (const name of names) use(workNamed(name));
      return { hosted: [] };
    },
  });
  await service[Symbol.asyncDispose]();
  expect(ending.toSorted()).toEqual(names);
});
