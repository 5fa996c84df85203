import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  dropIndex,
  frozenFunction,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as identity from './migrations/2026-11-21-identity.ts';
import * as derivedAddresses from './migrations/2026-11-22-derived-addresses.ts';
import * as anonymiseAfterDays from './migrations/2026-11-27-anonymise-after-days.ts';
import * as branding from './migrations/2026-12-05-branding.ts';
import * as sandboxes from './migrations/2026-12-06-sandboxes.ts';
import * as verificationMailboxes from './migrations/2026-12-12-verification-mailboxes.ts';

const migrations = {
  '2026-11-21-identity': identity,
  '2026-11-22-derived-addresses': derivedAddresses,
  '2026-11-27-anonymise-after-days': anonymiseAfterDays,
  // The foreign keys look for what refers to a user on each deletion of one.
  '2026-12-04-accounts-by-owner': concurrentIndex('account_owner', 'account (crm_id, owner_id)'),
  '2026-12-04-providers-by-owner': concurrentIndex('provider_owner', 'provider (crm_id, owner_id)'),
  '2026-12-04-staff-by-user': concurrentIndex('provider_staff_user', 'provider_staff (crm_id, user_id)'),
  '2026-12-05-branding': branding,
  '2026-12-06-sandboxes': sandboxes,
  '2026-12-12-verification-mailboxes': verificationMailboxes,
  '2026-12-21-1-username-as-read': frozenFunction(new URL('../user/username-as-read.sql', import.meta.url)),
  // They are not unique: the locks on login names are.
  '2026-12-21-2-users-by-address': concurrentIndex(
    'app_user_by_address',
    "app_user (left(email_key, strpos(email_key, E'\\n')), address_key(email))",
  ),
  '2026-12-21-3-users-by-username': concurrentIndex(
    'app_user_by_username',
    "app_user (left(username_key, strpos(username_key, E'\\n')), username_as_read(username))",
  ),
  '2026-12-21-4-users-by-derivation': concurrentIndex(
    'app_user_by_derivation',
    'app_user (crm_id, address_key(email_derived_from)) WHERE email_derived_from IS NOT NULL',
  ),
  // app_user_by_derivation has replaced it.
  '0001-users-by-derivation': dropIndex('app_user_email_derived_from'),
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
