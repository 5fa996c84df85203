import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  frozenFiles,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as reminders from './migrations/0001-reminders.ts';
import * as providerMails from './migrations/0002-provider-mails.ts';
import * as toldVersions from './migrations/0003-told-versions.ts';
import * as mailsOfErasedPersons from './migrations/0004-mails-of-erased-persons.ts';
import * as dailyLists from './migrations/0005-daily-lists.ts';
import * as requestsThatWait from './migrations/0006-requests-that-wait.ts';
import * as addressErasures from './migrations/0007-address-erasures.ts';
import * as erasedProviders from './migrations/0008-erased-providers.ts';
import * as organizersOfEarlierVersions from './migrations/0011-organizers-of-earlier-versions.ts';

const migrations = {
  '2026-11-21-mails': frozenFiles(import.meta.url, ['tables.sql']),
  '0001-reminders': reminders,
  '0002-provider-mails': providerMails,
  '0003-told-versions': toldVersions,
  '0004-mails-of-erased-persons': mailsOfErasedPersons,
  '0005-daily-lists': dailyLists,
  '0006-requests-that-wait': requestsThatWait,
  '0007-address-erasures': addressErasures,
  '0008-erased-providers': erasedProviders,
  // What is erased with a provider.
  '0009-mails-by-provider': concurrentIndex(
    'mail_provider',
    'mail (crm_id, provider_id, id) WHERE provider_id IS NOT NULL',
  ),
  '0010-organizers-by-provider': concurrentIndex(
    'event_organizer_provider',
    'event_organizer (crm_id, provider_id) WHERE provider_id IS NOT NULL',
  ),
  '0011-organizers-of-earlier-versions': organizersOfEarlierVersions,
  '0012-notices-by-provider': concurrentIndex('provider_notice_provider', 'provider_notice (crm_id, provider_id)'),
};

const functions = sqlFiles(import.meta.url, [
  '../erasure/provider-is-erased.sql',
  '../mail/store-mail.sql',
  '../mail/is-reminder-superseded.sql',
  '../mail/supersede-older-reminders.sql',
  '../mail/read-quota-use.sql',
  '../mail/record-sent-mail.sql',
  '../mail/supersede-unwritten-mails.sql',
  '../mail/store-unwritten-mail.sql',
  '../mail/store-written-mail.sql',
  '../provider-mail/store-provider-notice.sql',
  '../provider-mail/store-mails-of-change.sql',
  '../provider-mail/list-of-provider.sql',
  '../provider-mail/store-provider-mail.sql',
  '../provider-mail/store-provider-list.sql',
  '../provider-mail/erase-from-lists.sql',
  '../provider-mail/store-daily-notice.sql',
  '../provider-mail/store-daily-list.sql',
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
