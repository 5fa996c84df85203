import { messagingMigrations } from '@scheduling/messaging';
import { type MigrationSet, migrateDatabase } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as mails from './migrations/2026-11-21-mails.ts';
import * as mailQuotas from './migrations/2026-11-22-mail-quotas.ts';

const migrations = { '2026-11-21-mails': mails, '2026-11-22-mail-quotas': mailQuotas };

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [messagingMigrations, { name: 'notification', migrations }];

export function migrateNotificationDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
