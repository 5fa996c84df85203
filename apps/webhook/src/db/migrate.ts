import { messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type MigrationSet, migrateDatabase, sqlFile } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as events from './migrations/2026-11-30-events.ts';
import * as webhooks from './migrations/2026-12-01-webhooks.ts';
import * as secretIds from './migrations/2026-12-13-secret-ids.ts';
import * as webhookTests from './migrations/2026-12-20-webhook-tests.ts';
import * as removedEvents from './migrations/2026-12-26-removed-events.ts';
import * as ordinals from './migrations/2027-01-01-ordinals.ts';

const migrations = {
  '2026-11-30-events': events,
  '2026-12-01-webhooks': webhooks,
  '2026-12-13-secret-ids': secretIds,
  '2026-12-20-webhook-tests': webhookTests,
  '2026-12-26-removed-events': removedEvents,
  '2027-01-01-ordinals': ordinals,
};

/** When a function changes, add a line with a new date, which runs its file again. */
const functions = {
  '2026-11-30-1-sequence-events': sqlFile(new URL('../feed/sequence-events.sql', import.meta.url)),
  '2027-01-01-1-place-events': sqlFile(new URL('../feed/place-events.sql', import.meta.url)),
  '2027-01-01-2-sequence-events': sqlFile(new URL('../feed/sequence-events.sql', import.meta.url)),
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  { name: 'webhook', migrations },
  { name: 'webhook_functions', migrations: functions, inOneTransaction: true },
];

export function migrateWebhookDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
