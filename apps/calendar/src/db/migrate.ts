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
  // participation_by_email serves the previous version.
  '2026-12-10-participation-by-address': concurrentIndex(
    'participation_by_address',
    'participation (crm_id, address_key(email)) WHERE email IS NOT NULL',
  ),
  '2026-12-30-mail-events': mailEvents,
  '2027-01-01-event-counts': eventCounts,
};

/** When a function changes, add a line with a new date, which runs its file again. */
const functions = {
  '2026-11-21-1-reclaim-reservations': sqlFile(new URL('../participation/reclaim-reservations.sql', import.meta.url)),
  '2026-11-21-2-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-11-21-3-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-11-22-1-create-appointment': sqlFile(new URL('../appointment/create-appointment.sql', import.meta.url)),
  '2026-11-23-1-find-participation': sqlFile(new URL('../participation/find-participation.sql', import.meta.url)),
  '2026-11-24-1-appointment-json': sqlFile(new URL('../appointment/appointment-json.sql', import.meta.url)),
  '2026-11-24-2-read-appointments': sqlFile(new URL('../appointment/read-appointments.sql', import.meta.url)),
  '2026-11-24-3-read-timeslots': sqlFile(new URL('../timeslot/read-timeslots.sql', import.meta.url)),
  '2026-11-24-4-read-participation-notice': sqlFile(
    new URL('../participation/read-participation-notice.sql', import.meta.url),
  ),
  '2026-11-24-5-participation-record': sqlFile(new URL('../participation/participation-record.sql', import.meta.url)),
  '2026-11-24-6-find-participation': sqlFile(new URL('../participation/find-participation.sql', import.meta.url)),
  '2026-11-24-7-read-participation-notice': sqlFile(
    new URL('../participation/read-participation-notice.sql', import.meta.url),
  ),
  '2026-11-26-01-end-if-empty': sqlFile(new URL('../appointment/end-if-empty.sql', import.meta.url)),
  '2026-11-26-02-reclaim-reservations': sqlFile(new URL('../participation/reclaim-reservations.sql', import.meta.url)),
  '2026-11-26-03-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-11-26-04-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-11-26-05-overlaps': sqlFile(new URL('../slot/overlaps.sql', import.meta.url)),
  '2026-11-26-06-occupancy': sqlFile(new URL('../slot/occupancy.sql', import.meta.url)),
  '2026-11-26-07-slot-functions': sqlFile(new URL('../slot/slot-functions.sql', import.meta.url)),
  '2026-11-26-08-read-slots': sqlFile(new URL('../slot/read-slots.sql', import.meta.url)),
  '2026-11-26-09-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2026-11-26-10-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-11-26-11-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2026-11-26-12-participation-record': sqlFile(new URL('../participation/participation-record.sql', import.meta.url)),
  '2026-11-26-13-read-booking': sqlFile(new URL('../slot/read-booking.sql', import.meta.url)),
  '2026-11-26-14-find-participation': sqlFile(new URL('../participation/find-participation.sql', import.meta.url)),
  '2026-11-26-15-read-participation-notice': sqlFile(
    new URL('../participation/read-participation-notice.sql', import.meta.url),
  ),
  '2026-11-26-16-appointment-json': sqlFile(new URL('../appointment/appointment-json.sql', import.meta.url)),
  '2026-11-26-17-read-appointments': sqlFile(new URL('../appointment/read-appointments.sql', import.meta.url)),
  '2026-11-26-18-read-timeslots': sqlFile(new URL('../timeslot/read-timeslots.sql', import.meta.url)),
  '2026-11-26-19-read-appointment': sqlFile(new URL('../appointment/read-appointment.sql', import.meta.url)),
  '2026-11-27-1-appointment-json': sqlFile(new URL('../appointment/appointment-json.sql', import.meta.url)),
  '2026-11-27-2-read-appointments': sqlFile(new URL('../appointment/read-appointments.sql', import.meta.url)),
  '2026-11-27-3-read-participations': sqlFile(new URL('../participation/read-participations.sql', import.meta.url)),
  '2026-11-29-1-append-events': sqlFile(new URL('../events/append-events.sql', import.meta.url)),
  '2026-11-29-2-end-if-empty': sqlFile(new URL('../appointment/end-if-empty.sql', import.meta.url)),
  '2026-11-29-3-reclaim-reservations': sqlFile(new URL('../participation/reclaim-reservations.sql', import.meta.url)),
  '2026-11-29-4-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-11-29-5-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-11-29-6-create-appointment': sqlFile(new URL('../appointment/create-appointment.sql', import.meta.url)),
  '2026-11-29-7-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2026-11-29-8-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-11-29-9-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2026-12-02-1-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-02-2-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2026-12-02-3-append-events': sqlFile(new URL('../events/append-events.sql', import.meta.url)),
  '2026-12-06-01-reclaim-reservations': sqlFile(new URL('../participation/reclaim-reservations.sql', import.meta.url)),
  '2026-12-06-02-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-12-06-03-find-participation': sqlFile(new URL('../participation/find-participation.sql', import.meta.url)),
  '2026-12-06-04-read-participation-notice': sqlFile(
    new URL('../participation/read-participation-notice.sql', import.meta.url),
  ),
  '2026-12-06-05-read-participations': sqlFile(new URL('../participation/read-participations.sql', import.meta.url)),
  '2026-12-06-06-create-appointment': sqlFile(new URL('../appointment/create-appointment.sql', import.meta.url)),
  '2026-12-06-07-read-appointments': sqlFile(new URL('../appointment/read-appointments.sql', import.meta.url)),
  '2026-12-06-08-read-appointment': sqlFile(new URL('../appointment/read-appointment.sql', import.meta.url)),
  '2026-12-06-09-read-timeslots': sqlFile(new URL('../timeslot/read-timeslots.sql', import.meta.url)),
  '2026-12-06-10-read-slots': sqlFile(new URL('../slot/read-slots.sql', import.meta.url)),
  '2026-12-06-11-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2026-12-06-12-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-06-13-read-booking': sqlFile(new URL('../slot/read-booking.sql', import.meta.url)),
  '2026-12-08-1-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-08-2-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-12-08-3-read-participations': sqlFile(new URL('../participation/read-participations.sql', import.meta.url)),
  '2026-12-08-4-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-12-21-1-overlaps': sqlFile(new URL('../slot/overlaps.sql', import.meta.url)),
  '2026-12-21-2-read-slots': sqlFile(new URL('../slot/read-slots.sql', import.meta.url)),
  '2026-12-22-1-add-prepared-customer': sqlFile(new URL('../customer/add-prepared-customer.sql', import.meta.url)),
  '2026-12-22-2-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-22-3-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-12-23-1-slot-functions': sqlFile(new URL('../slot/slot-functions.sql', import.meta.url)),
  '2026-12-24-1-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2026-12-24-2-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-24-3-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2026-12-25-1-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2026-12-25-2-read-slots': sqlFile(new URL('../slot/read-slots.sql', import.meta.url)),
  '2026-12-30-1-append-events': sqlFile(new URL('../events/append-events.sql', import.meta.url)),
  '2026-12-30-2-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2026-12-30-3-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2026-12-30-4-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2026-12-30-5-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2026-12-30-6-create-appointment': sqlFile(new URL('../appointment/create-appointment.sql', import.meta.url)),
  '2027-01-01-1-append-events': sqlFile(new URL('../events/append-events.sql', import.meta.url)),
  '2027-01-01-2-reclaim-reservations': sqlFile(new URL('../participation/reclaim-reservations.sql', import.meta.url)),
  '2027-01-01-3-end-if-empty': sqlFile(new URL('../appointment/end-if-empty.sql', import.meta.url)),
  '2027-01-01-4-create-participation': sqlFile(new URL('../participation/create-participation.sql', import.meta.url)),
  '2027-01-01-5-claim-place': sqlFile(new URL('../slot/claim-place.sql', import.meta.url)),
  '2027-01-01-6-book-slot': sqlFile(new URL('../slot/book-slot.sql', import.meta.url)),
  '2027-01-01-7-move-booking': sqlFile(new URL('../slot/move-booking.sql', import.meta.url)),
  '2027-01-01-8-move-participation': sqlFile(new URL('../participation/move-participation.sql', import.meta.url)),
  '2027-01-01-9-create-appointment': sqlFile(new URL('../appointment/create-appointment.sql', import.meta.url)),
  '2027-01-20-1-occupancy': sqlFile(new URL('../slot/occupancy.sql', import.meta.url)),
  '2027-01-20-2-read-appointment': sqlFile(new URL('../appointment/read-appointment.sql', import.meta.url)),
  '2027-01-20-3-read-appointments': sqlFile(new URL('../appointment/read-appointments.sql', import.meta.url)),
  '2027-01-20-4-read-timeslots': sqlFile(new URL('../timeslot/read-timeslots.sql', import.meta.url)),
};

/** What relies on the functions. */
const repairs = {
  '2026-12-08-1-embedded-names': embeddedNames,
  '2026-12-08-2-one-name': oneName,
  '2026-12-08-3-one-name-everywhere': oneNameEverywhere,
};

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'calendar', migrations },
  { name: 'calendar_functions', migrations: functions, inOneTransaction: true },
  { name: 'calendar_repairs', migrations: repairs },
];

export function migrateCalendarDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
