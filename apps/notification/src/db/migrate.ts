import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as mails from './migrations/2026-11-21-mails.ts';
import * as mailQuotas from './migrations/2026-11-22-mail-quotas.ts';
import * as erasedUsers from './migrations/2026-11-25-erased-users.ts';
import * as mailProviders from './migrations/2026-11-26-mail-providers.ts';
import * as resend from './migrations/2026-12-06-resend.ts';
import * as sandboxMails from './migrations/2026-12-07-sandbox-mails.ts';
import * as recipientKeys from './migrations/2026-12-10-recipient-keys.ts';
import * as unwrittenMails from './migrations/2026-12-21-unwritten-mails.ts';
import * as organizers from './migrations/2026-12-26-organizers.ts';
import * as mailOrder from './migrations/2026-12-30-mail-order.ts';

const migrations = {
  '2026-11-21-mails': mails,
  '2026-11-22-mail-quotas': mailQuotas,
  '2026-11-25-erased-users': erasedUsers,
  '2026-11-26-mail-providers': mailProviders,
  '2026-12-06-resend': resend,
  // At most one copy of a mail waits at a time.
  '2026-12-06-resend-index-of-copies': concurrentIndex(
    'mail_copy',
    "mail (crm_id, resend_of) WHERE state = 'pending' AND resend_of IS NOT NULL",
    'UNIQUE INDEX',
  ),
  '2026-12-06-resend-index-of-subject': concurrentIndex('mail_about', 'mail (crm_id, about_id, id)'),
  '2026-12-07-sandbox-mails': sandboxMails,
  '2026-12-10-recipient-keys': recipientKeys,
  '2026-12-21-unwritten-mails': unwrittenMails,
  '2026-12-26-organizers': organizers,
  '2026-12-30-mail-order': mailOrder,
};

const functions = sqlFiles(import.meta.url, [
  '../mail/store-mail.sql',
  '../mail/read-quota-use.sql',
  '../mail/record-sent-mail.sql',
  '../mail/supersede-unwritten-mails.sql',
  '../mail/store-unwritten-mail.sql',
  '../mail/store-written-mail.sql',
]);

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'notification', migrations, functions },
];

export function migrateNotificationDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
