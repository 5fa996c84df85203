import { messagingMigrations } from '@scheduling/messaging';
import { type MigrationSet, migrateDatabase, sqlFile } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as mails from './migrations/2026-11-21-mails.ts';
import * as mailQuotas from './migrations/2026-11-22-mail-quotas.ts';
import * as erasedUsers from './migrations/2026-11-25-erased-users.ts';
import * as mailProviders from './migrations/2026-11-26-mail-providers.ts';

const migrations = {
  '2026-11-21-mails': mails,
  '2026-11-22-mail-quotas': mailQuotas,
  '2026-11-25-erased-users': erasedUsers,
  '2026-11-26-mail-providers': mailProviders,
};

/** When a function changes, add a line with a new date, which runs its file again. */
const functions = {
  '2026-11-22-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-11-24-1-read-quota-use': sqlFile(new URL('../mail/read-quota-use.sql', import.meta.url)),
  '2026-11-24-2-record-sent-mail': sqlFile(new URL('../mail/record-sent-mail.sql', import.meta.url)),
  '2026-11-24-3-record-sent-mail': sqlFile(new URL('../mail/record-sent-mail.sql', import.meta.url)),
  '2026-11-25-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
  '2026-11-26-1-store-mail': sqlFile(new URL('../mail/store-mail.sql', import.meta.url)),
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  { name: 'notification', migrations },
  { name: 'notification_functions', migrations: functions, inOneTransaction: true },
];

export function migrateNotificationDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
