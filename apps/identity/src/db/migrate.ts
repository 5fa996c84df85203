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
  // These are for lists in the order of ids, and for the foreign keys, as the ones that they replace.
  '0005-accounts-by-owner': concurrentIndex('account_by_owner', 'account (crm_id, owner_id, id)'),
  '0006-providers-by-owner': concurrentIndex('provider_by_owner', 'provider (crm_id, owner_id, id)'),
  '0007-providers-by-account': concurrentIndex('provider_by_account', 'provider (crm_id, account_id, id)'),
  '0008-accounts-of-owner': dropIndex('account_owner'),
  '0009-providers-of-owner': dropIndex('provider_owner'),
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
