import { messagingMigrations } from '@scheduling/messaging';
import { frozenFiles, idempotencyMigrations, type MigrationSet, migrateDatabase, sqlFiles } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as sequenceEvents from './migrations/0001-sequence-events.ts';

const migrations = {
  '2026-11-30-events': frozenFiles(import.meta.url, ['tables.sql']),
  '0001-sequence-events': sequenceEvents,
};

const functions = sqlFiles(import.meta.url, ['../feed/record-events.sql']);

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  { name: 'webhook', migrations, functions },
];

export function migrateWebhookDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
