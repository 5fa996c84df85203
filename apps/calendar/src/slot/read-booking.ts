import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import { parseRecord, type WrittenRecord } from '../participation/participation.ts';
import type { Place } from './place.ts';
import type { Booking, Slot, SlotRecord } from './slot.ts';

/** See read-booking.sql. Undefined if there is no such participation, or if it is an expired reservation. */
export async function readBooking(
  db: Kysely<CalendarSchema>,
  { crmId, place }: { crmId: string; place?: Place | undefined },
  participationId: string,
): Promise<Booking | undefined> {
  const request = { crmId, participationId };
  const found = await callFunction<{ participation: WrittenRecord; slot: SlotRecord } | null>(db, {
    name: 'read_booking',
    request,
    locks: '',
  });
  return found === null
    ? undefined
    : { participation: parseRecord(found.participation), slot: slotOf(place, found.slot) };
}

/** @param place as it was requested, which says in which timeslot the slot is */
export function slotOf(place: Place | undefined, { startsAt, endsAt, ...record }: SlotRecord): Slot {
  const timeslotReference = place !== undefined && 'timeslotReference' in place ? place.timeslotReference : null;
  return { ...record, timeslotReference, startsAt: Date.parse(startsAt), endsAt: Date.parse(endsAt) };
}
