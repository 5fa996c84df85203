import { type MessagingSchema, messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type IdempotencySchema, migrateDatabase } from '@scheduling/postgres';
import { checkHealth } from '@scheduling/rpc/health';
import { readEnvironment } from '@scheduling/runtime';
import { createTestDatabase, hasIpv6, nowhere, testLogger } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { createService, readServiceSettings } from '../src/index.ts';

const logger = testLogger('service-test');
const migrations = [idempotencyMigrations, messagingMigrations];

it('serves gRPC and metrics on the addresses of IPv4 and of IPv6 by default', async ({ skip }) => {
  skip(!hasIpv6(), 'this machine has no IPv6');
  const databaseUrl = await createTestDatabase();
  await migrateDatabase({ url: databaseUrl, sets: migrations, logger });
  const ports = { GRPC_PORT: '0', ADMIN_PORT: '0', METRICS_PORT: '0' };
  const settings = readEnvironment(
    { ADMIN_LISTEN_HOST: '::1', ...ports, DATABASE_URL: databaseUrl, NATS_URL: `nats://${nowhere}` },
    readServiceSettings,
  );
  await using service = await createService<IdempotencySchema & MessagingSchema>({
    name: 'customer',
    settings,
    migrations,
    logger,
    compose: () => ({ hosted: [] }),
  });
  for (const host of ['127.0.0.1', '[::1]']) {
    expect(await checkHealth('customer', `${host}:${service.grpcPort}`)).toBe('SERVING');
    expect((await fetch(`http://${host}:${service.metricsPort}/metrics`)).status).toBe(200);
  }
  expect(await checkHealth('customer', `[::1]:${service.adminPort}`)).toBe('SERVING');
  await expect(checkHealth('customer', `127.0.0.1:${service.adminPort}`)).rejects.toThrow('does not answer');
});
