import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  dropIndex,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as customers from './migrations/2026-11-21-customers.ts';
import * as customersOfProvider from './migrations/2026-11-25-customers-of-provider.ts';
import * as addressErasures from './migrations/2026-11-27-address-erasures.ts';
import * as erasureRequestedBy from './migrations/2026-12-03-erasure-requested-by.ts';
import * as provisionalCustomers from './migrations/2026-12-21-provisional-customers.ts';

const migrations = {
  '2026-11-21-customers': customers,
  '2026-11-25-customers-of-provider': customersOfProvider,
  '2026-11-27-address-erasures': addressErasures,
  '2026-12-03-erasure-requested-by': erasureRequestedBy,
  '2026-12-08-erasures-to-finish': concurrentIndex(
    'erasure_to_finish',
    "erasure (crm_id, published_at) WHERE state = 'checking'",
  ),
  '2026-12-10-customer-by-address': concurrentIndex(
    'customer_by_address',
    'customer (crm_id, address_key(email)) WHERE email IS NOT NULL',
  ),
  '2026-12-21-provisional-customers': provisionalCustomers,
  // For lists in the order of ids, too, so it replaces customer_by_address.
  '2026-12-22-1-customers-by-address': concurrentIndex(
    'customer_by_address_and_id',
    'customer (crm_id, address_key(email), provider_id, id) WHERE email IS NOT NULL',
  ),
  '2026-12-22-2-customers-by-address': dropIndex('customer_by_address'),
  '2026-12-22-customers-to-decide': concurrentIndex(
    'customer_to_decide',
    'customer (provisional_until) WHERE provisional_until IS NOT NULL',
  ),
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
