import { messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type MigrationSet, migrateDatabase, sqlFiles } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as events from './migrations/2026-11-30-events.ts';
import * as webhooks from './migrations/2026-12-01-webhooks.ts';
import * as secretIds from './migrations/2026-12-13-secret-ids.ts';
import * as webhookTests from './migrations/2026-12-20-webhook-tests.ts';
import * as removedEvents from './migrations/2026-12-26-removed-events.ts';
import * as ordinals from './migrations/2027-01-01-ordinals.ts';
import * as sequenceEvents from './migrations/0001-sequence-events.ts';

const migrations = {
  '2026-11-30-events': events,
  '2026-12-01-webhooks': webhooks,
  '2026-12-13-secret-ids': secretIds,
  '2026-12-20-webhook-tests': webhookTests,
  '2026-12-26-removed-events': removedEvents,
  '2027-01-01-ordinals': ordinals,
  '0001-sequence-events': sequenceEvents,
};

const functions = sqlFiles(import.meta.url, ['../feed/place-events.sql']);

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  { name: 'webhook', migrations, functions },
];

export function migrateWebhookDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
