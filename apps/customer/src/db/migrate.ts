import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  dropIndex,
  frozenFiles,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as metadata from './migrations/0002-metadata.ts';
import * as closedProviders from './migrations/0004-closed-providers.ts';

const migrations = {
  '2026-11-21-customers': frozenFiles(import.meta.url, ['tables.sql']),
  // customer_by_address_and_id has replaced it.
  '0001-customers-by-email': dropIndex('customer_by_email'),
  '0002-metadata': metadata,
  // Of each provider by itself: a pair that others have, too, costs nothing. Without fastupdate, because a list would read what others have just written.
  '0003-customers-by-metadata': concurrentIndex(
    'customer_by_metadata',
    "customer USING gin (jsonb_set('{}', ARRAY[provider_id::text], metadata) jsonb_path_ops) WITH (fastupdate = off) WHERE metadata IS NOT NULL",
  ),
  '0004-closed-providers': closedProviders,
};

const functions = sqlFiles(import.meta.url, ['../customer/create-customer.sql', '../customer/get-customer.sql']);

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'customer', migrations, functions },
];

export function migrateCustomerDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
