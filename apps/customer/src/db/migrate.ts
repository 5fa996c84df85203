import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  dropIndex,
  frozenFiles,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';

const migrations = {
  '2026-11-21-customers': frozenFiles(import.meta.url, ['tables.sql']),
  // customer_by_address_and_id has replaced it.
  '0001-customers-by-email': dropIndex('customer_by_email'),
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
