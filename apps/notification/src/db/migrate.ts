import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFile,
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
  '2026-12-06-resend-index-of-subject': concurrentIndex('mail_about', 'mail (crm_id, about_id, id)'),
  // At most one copy of a mail waits at a time.
  '2026-12-06-resend-index-of-copies': concurrentIndex(
    'mail_copy',
    "mail (crm_id, resend_of) WHERE state = 'pending' AND resend_of IS NOT NULL",
    'UNIQUE INDEX',
  ),
  '2026-12-07-sandbox-mails': sandboxMails,
  '2026-12-10-recipient-keys': recipientKeys,
  '2026-12-21-unwritten-mails': unwrittenMails,
  '2026-12-26-organizers': organizers,
  '2026-12-30-mail-order': mailOrder,
};

/** When a function changes, add a line with a new date, which runs its file again. */
const functions = {
  '2026-11-22-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-11-24-1-read-quota-use': sqlFile(new URL('../mail/read-quota-use.sql', import.meta.url)),
  '2026-11-24-2-record-sent-mail': sqlFile(new URL('../mail/record-sent-mail.sql', import.meta.url)),
  '2026-11-24-3-record-sent-mail': sqlFile(new URL('../mail/record-sent-mail.sql', import.meta.url)),
  '2026-11-25-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-11-26-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-06-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-07-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-07-2-record-sent-mail': sqlFile(new URL('../mail/record-sent-mail.sql', import.meta.url)),
  '2026-12-10-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-20-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-21-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-21-2-supersede-unwritten-mails': sqlFile(new URL('../mail/supersede-unwritten-mails.sql', import.meta.url)),
  '2026-12-21-3-store-unwritten-mail': sqlFile(new URL('../mail/store-unwritten-mail.sql', import.meta.url)),
  '2026-12-21-4-store-written-mail': sqlFile(new URL('../mail/store-written-mail.sql', import.meta.url)),
  '2026-12-26-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-12-30-0-read-quota-use': sqlFile(new URL('../mail/read-quota-use.sql', import.meta.url)),
  '2026-12-30-1-store-unwritten-mail': sqlFile(new URL('../mail/store-unwritten-mail.sql', import.meta.url)),
  '2026-12-30-2-store-written-mail': sqlFile(new URL('../mail/store-written-mail.sql', import.meta.url)),
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'notification', migrations },
  { name: 'notification_functions', migrations: functions, inOneTransaction: true },
];

export function migrateNotificationDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
