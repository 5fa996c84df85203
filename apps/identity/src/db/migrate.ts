import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  dropIndex,
  frozenFiles,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as privacyNotice from './migrations/0003-privacy-notice.ts';
import * as keyScopes from './migrations/0004-key-scopes.ts';

const migrations = {
  '2026-11-21-identity': frozenFiles(import.meta.url, ['../user/username-as-read.sql', 'tables.sql']),
  // app_user_by_derivation has replaced it.
  '0001-users-by-derivation': dropIndex('app_user_email_derived_from'),
  // Pages know a provider by its id alone.
  '0002-provider-by-id': concurrentIndex('provider_by_id', 'provider (id)', 'UNIQUE INDEX'),
  '0003-privacy-notice': privacyNotice,
  '0004-key-scopes': keyScopes,
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'identity', migrations },
];

export function migrateIdentityDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
