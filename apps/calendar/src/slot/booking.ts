import { callFunction } from '@scheduling/postgres';
import type { CalendarDependencies } from '../dependencies.ts';
import type { Place } from './place.ts';
import type { Slot } from './slot.ts';

/** What is booked, and where. */
export interface Booking {
  /** An object of the REST interface (2.6), as JSON. */
  participation: string;
  slot: Slot;
}

/** The timeslot in which a slot was requested, if any: it is the one that is shown with the booking. */
function timeslotOf(place: Place | undefined): string | null {
  return place !== undefined && 'timeslotReference' in place ? place.timeslotReference : null;
}

/** See read-booking.sql. */
export async function readBooking(
  { database }: CalendarDependencies,
  { crmId, place }: { crmId: string; place?: Place | undefined },
  participationId: string,
): Promise<Booking | undefined> {
  const request = { crmId, participationId, timeslotReference: timeslotOf(place) };
  return (await callFunction<Booking | null>(database.kysely, { name: 'read_booking', request })) ?? undefined;
}
