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
import * as oneShape from './migrations/0002-one-shape.ts';
import * as persons from './migrations/0003-persons.ts';
import * as reminders from './migrations/0004-reminders.ts';
import * as arrangements from './migrations/0005-arrangements.ts';
import * as calendarSubscriptions from './migrations/0006-calendar-subscriptions.ts';
import * as previous from './migrations/0008-previous.ts';
import * as decisions from './migrations/0009-decisions.ts';
import * as waitingRequests from './migrations/0010-waiting-requests.ts';
import * as dailyLists from './migrations/0011-daily-lists.ts';
import * as pageRules from './migrations/0012-page-rules.ts';
import * as pageBookings from './migrations/0013-page-bookings.ts';
import * as invitations from './migrations/0016-invitations.ts';
import * as hours from './migrations/0017-hours.ts';
import * as hoursCheck from './migrations/0018-hours-check.ts';
import * as blocksAndBuffers from './migrations/0021-blocks-and-buffers.ts';
import * as metadataAndNoShow from './migrations/0024-metadata-and-no-show.ts';
import * as noShowCheck from './migrations/0027-no-show-check.ts';
import * as closedProviders from './migrations/0028-closed-providers.ts';

const migrations = {
  '2026-11-21-tables': frozenFiles(import.meta.url, ['tables.sql']),
  '0002-one-shape': oneShape,
  '0003-persons': persons,
  '0004-reminders': reminders,
  '0005-arrangements': arrangements,
  '0006-calendar-subscriptions': calendarSubscriptions,
  // Whether a customer of a provider has changed lately.
  '0007-customer-by-refresh': concurrentIndex('customer_by_refresh', 'customer (crm_id, provider_id, refreshed_at)'),
  '0008-previous': previous,
  '0009-decisions': decisions,
  '0010-waiting-requests': waitingRequests,
  '0011-daily-lists': dailyLists,
  '0012-page-rules': pageRules,
  '0013-page-bookings': pageBookings,
  // How much is held on the pages of a provider.
  '0014-page-holds': concurrentIndex(
    'participation_page_hold',
    "participation (crm_id, reserved_until) WHERE reserved_until IS NOT NULL AND reference LIKE 'page-%'",
  ),
  // How many bookings an address has.
  '0015-customer-by-address': concurrentIndex(
    'customer_by_address',
    'customer (crm_id, provider_id, address_key(email)) WHERE email IS NOT NULL',
  ),
  '0016-invitations': invitations,
  '0017-hours': hours,
  '0018-hours-check': hoursCheck,
  // A window makes one timeslot.
  '0019-timeslots-of-hours': concurrentIndex(
    'timeslot_of_hours',
    'timeslot (crm_id, provider_id, resource_reference, content_digest) WHERE from_hours IS NOT NULL',
    'UNIQUE INDEX',
  ),
  // Those that the CRM has changed.
  '0020-changed-timeslots': concurrentIndex(
    'timeslot_changed',
    "timeslot (crm_id, provider_id, resource_reference) WHERE from_hours = 'CHANGED'",
  ),
  '0021-blocks-and-buffers': blocksAndBuffers,
  // What has buffers, so that calendars without any cost nothing.
  '0022-timeslots-with-buffers': concurrentIndex(
    'timeslot_with_buffers',
    'timeslot (crm_id, provider_id, resource_reference, starts_at) WHERE buffer_before > 0 OR buffer_after > 0',
  ),
  '0023-appointments-with-buffers': concurrentIndex(
    'appointment_with_buffers',
    'appointment (crm_id, provider_id, resource_reference, starts_at) WHERE buffer_before > 0 OR buffer_after > 0',
  ),
  '0024-metadata-and-no-show': metadataAndNoShow,
  // Of each provider, and of each CRM, by itself: a pair that others have, too, costs nothing. Without fastupdate, because a list would read what others have just
  // written.
  '0025-appointments-by-metadata': concurrentIndex(
    'appointment_by_metadata',
    "appointment USING gin (jsonb_set('{}', ARRAY[provider_id::text], metadata) jsonb_path_ops) WITH (fastupdate = off) WHERE metadata IS NOT NULL",
  ),
  '0026-participations-by-metadata': concurrentIndex(
    'participation_by_metadata',
    "participation USING gin (jsonb_set('{}', ARRAY[crm_id], metadata) jsonb_path_ops) WITH (fastupdate = off) WHERE metadata IS NOT NULL",
  ),
  '0027-no-show-check': noShowCheck,
  '0028-closed-providers': closedProviders,
  // These are for the deletion of a provider.
  '0029-invitations-of-provider': concurrentIndex('invitation_by_provider', 'invitation (crm_id, provider_id)'),
  '0030-pending-bookings-of-provider': concurrentIndex(
    'pending_booking_by_provider',
    'pending_booking (crm_id, provider_id)',
  ),
};

const functions = sqlFiles(import.meta.url, [
  'json.sql',
  '../provider/is-present-provider.sql',
  '../provider/store-provider.sql',
  '../events/append-events.sql',
  '../customer/store-customer.sql',
  '../customer/add-prepared-customer.sql',
  '../customer/customer-to-book-for.sql',
  '../participation/answers.sql',
  '../participation/states.sql',
  '../participation/participation-json.sql',
  '../appointment/appointment-json.sql',
  '../appointment/conflicts.sql',
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
  '../person/own-booking-rights.sql',
  '../participation/read-participation-mail-data.sql',
  '../decision/read-requested-booking.sql',
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
  '../page/read-page-choice.sql',
  '../page/hold-page-time.sql',
  '../page/release-page-hold.sql',
  '../page/future-bookings.sql',
  '../invitation/book-by-invitation.sql',
  '../page/book-page-time.sql',
  '../page/store-pending-booking.sql',
  '../person/read-own-booking.sql',
  '../person/cancel-own-booking.sql',
  '../person/confirm-attendance.sql',
  '../decision/decide-request.sql',
  '../reminder/await-decision.sql',
  '../reminder/remind-of-requests.sql',
  '../timeslot/timeslot-json.sql',
  '../hours/open-windows.sql',
  '../hours/replace-hours.sql',
  '../hours/make-days.sql',
  '../block/conflicts-with-block.sql',
  '../block/read-blocks.sql',
  '../timeslot/read-timeslots.sql',
  '../reminder/remind.sql',
  '../daily-list/day-appointments.sql',
  '../daily-list/write-daily-lists.sql',
  '../daily-list/read-day.sql',
  '../subscription/read-calendar.sql',
]);

/** In execution order; the doctor compares the database with them. */
export const migrationSets: MigrationSet[] = [
  messagingMigrations,
  idempotencyMigrations,
  addressMigrations,
  { name: 'calendar', migrations, functions },
];

export function migrateCalendarDatabase(url: string, logger: Logger): Promise<void> {
  return migrateDatabase({ url, sets: migrationSets, logger });
}
