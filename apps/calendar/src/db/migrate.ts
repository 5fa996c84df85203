import { messagingMigrations } from '@scheduling/messaging';
import { idempotencyMigrations, type MigrationSet, migrateDatabase } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as tables from './migrations/2026-11-21-1-tables.ts';
import * as booking from './migrations/2026-11-21-2-booking.ts';

const migrations = { '2026-11-21-1-tables': tables, '2026-11-21-2-booking': booking };

/** In the order in which they run; the doctor compares with them. */
export const migrationSets: MigrationSet[] = [messagingMigrations, idempotencyMigrations, { name: 'calendar', migrations }];

export function migrateCalendarDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
