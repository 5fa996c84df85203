import { messagingMigrations } from '@scheduling/messaging';
import {
  addressMigrations,
  concurrentIndex,
  dropIndex,
  idempotencyMigrations,
  type MigrationSet,
  migrateDatabase,
  sqlFiles,
} from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import * as tables from './migrations/2026-11-21-tables.ts';
import * as roomForUpdates from './migrations/2026-11-23-room-for-updates.ts';
import * as slots from './migrations/2026-11-24-slots.ts';
import * as cancelledAppointments from './migrations/2026-11-25-cancelled-appointments.ts';
import * as participationChanges from './migrations/2026-11-25-participation-changes.ts';
import * as embeddedAddresses from './migrations/2026-11-27-embedded-addresses.ts';
import * as anonymisedAppointments from './migrations/2026-11-28-anonymised-appointments.ts';
import * as appointmentRevisions from './migrations/2026-12-02-appointment-revisions.ts';
import * as sandboxClocks from './migrations/2026-12-06-sandbox-clocks.ts';
import * as customerVersions from './migrations/2026-12-08-customer-versions.ts';
import * as embeddedNames from './migrations/2026-12-08-1-embedded-names.ts';
import * as oneName from './migrations/2026-12-08-2-one-name.ts';
import * as oneNameEverywhere from './migrations/2026-12-08-3-one-name-everywhere.ts';
import * as mailEvents from './migrations/2026-12-30-mail-events.ts';
import * as eventCounts from './migrations/2027-01-01-event-counts.ts';
import * as oneShape from './migrations/0002-one-shape.ts';
import * as noEncoding from './migrations/0001-no-encoding.ts';

const migrations = {
  '2026-11-21-tables': tables,
  '2026-11-23-room-for-updates': roomForUpdates,
  '2026-11-24-slots': slots,
  '2026-11-25-cancelled-appointments': cancelledAppointments,
  '2026-11-25-participation-changes': participationChanges,
  '2026-11-27-embedded-addresses': embeddedAddresses,
  '2026-11-28-anonymised-appointments': anonymisedAppointments,
  '2026-12-02-appointment-revisions': appointmentRevisions,
  '2026-12-06-sandbox-clocks': sandboxClocks,
  '2026-12-08-customer-versions': customerVersions,
  '2026-12-08-customers-to-refresh': concurrentIndex(
    'customer_to_refresh',
    'customer (refreshed_at) WHERE NOT reference_known AND erased_at IS NULL',
  ),
  '2026-12-10-participation-by-address': concurrentIndex(
    'participation_by_address',
    'participation (crm_id, address_key(email)) WHERE email IS NOT NULL',
  ),
  '2026-12-30-mail-events': mailEvents,
  '2027-01-01-event-counts': eventCounts,
  // participation_by_address has replaced it.
  '0001-participations-by-email': dropIndex('participation_by_email'),
  '0002-one-shape': oneShape,
};

const functions = sqlFiles(import.meta.url, [
  'json.sql',
  '../provider/is-present-provider.sql',
  '../events/append-events.sql',
  '../customer/add-prepared-customer.sql',
  '../customer/customer-to-book-for.sql',
  '../participation/answers.sql',
  '../participation/states.sql',
  '../participation/participation-json.sql',
  '../appointment/appointment-json.sql',
  '../appointment/end-if-empty.sql',
  '../appointment/lock-appointment.sql',
  '../appointment/create-appointment.sql',
  '../appointment/create-series.sql',
  '../appointment/update-appointment.sql',
  '../appointment/cancel-appointment.sql',
  '../appointment/delete-appointments.sql',
  '../appointment/read-appointment.sql',
  '../appointment/read-appointments.sql',
  '../participation/reclaim-reservations.sql',
  '../participation/insert-participation.sql',
  '../participation/change-state.sql',
  '../participation/create-participation.sql',
  '../participation/update-participation.sql',
  '../participation/read-participation.sql',
  '../participation/read-participations.sql',
  '../participation/read-participation-mail-data.sql',
  '../slot/overlaps.sql',
  '../slot/occupancy.sql',
  '../slot/slot-functions.sql',
  '../slot/slot-details.sql',
  '../slot/claim-place.sql',
  '../slot/read-slots.sql',
  '../slot/read-booking.sql',
  '../slot/book-slot.sql',
  '../slot/confirm-hold.sql',
  '../slot/move-booking.sql',
  '../timeslot/timeslot-json.sql',
  '../timeslot/read-timeslots.sql',
]);

/** What relies on the functions. */
const repairs = {
  '2026-12-08-1-embedded-names': embeddedNames,
  '2026-12-08-2-one-name': oneName,
  '2026-12-08-3-one-name-everywhere': oneNameEverywhere,
  '0001-no-encoding': noEncoding,
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'calendar', migrations, functions },
  { name: 'calendar_repairs', migrations: repairs },
];

export function migrateCalendarDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
