import { messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type MigrationSet, migrateDatabase } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as customers from './migrations/2026-11-21-customers.ts';

const migrations = { '2026-11-21-customers': customers };

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [messagingMigrations, idempotencyMigrations, { name: 'customer', migrations }];

export function migrateCustomerDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
