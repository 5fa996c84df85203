import {
  type BookSlotRequest,
  type ListSlotsRequest,
  type NewTimeslot,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import type { Calendar } from './calendar-under-test.ts';
import { freshReference, owned } from './calendar-under-test.ts';

/** A slot as an object of the REST interface. */
export interface ListedSlot {
  start: string;
  end: string;
  resourceReference: string;
  timeslotReference: string | null;
  appointmentReference: string | null;
  productReference: string | null;
  description: string | null;
  capacity: number;
  seats: number;
  address: unknown;
  price: unknown;
}

type Timeslot = NewTimeslot & { reference: string };
type TimeslotOverrides = Partial<Timeslot>;

/** In 2099, from 10:00 to 12:00 in Berlin, in half hours, of a resource of its own. */
export function newTimeslot(overrides: TimeslotOverrides = {}): Timeslot {
  return {
    reference: freshReference('timeslot'),
    resourceReference: freshReference('resource'),
    start: '2099-06-01T10:00',
    end: '2099-06-01T12:00',
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    ...overrides,
  };
}

export async function createTimeslot(calendar: Calendar, overrides: TimeslotOverrides = {}): Promise<Timeslot> {
  const timeslot = newTimeslot(overrides);
  await patiently(() => calendar.timeslots.createTimeslots({ ...owned, timeslots: [timeslot] }));
  return timeslot;
}

/** All of them, in 2099 unless stated otherwise. */
export async function listSlots(calendar: Calendar, overrides: Partial<ListSlotsRequest> = {}): Promise<ListedSlot[]> {
  const request = { ...owned, from: '2099-05-20T00:00', to: '2099-06-20T00:00', ignoreNotice: false, ...overrides };
  const parts = await patiently(() => Array.fromAsync(calendar.bookings.listSlots(request)));
  return parts.flatMap(({ json }) => JSON.parse(`[${json.toString()}]`) as ListedSlot[]);
}

/** A reservation without a customer, unless stated otherwise. */
export function newBooking(place: BookSlotRequest['place'], overrides: Partial<BookSlotRequest> = {}): BookSlotRequest {
  return {
    ...owned,
    place,
    reference: freshReference('booking'),
    state: ParticipationState.RESERVED,
    ignoreNotice: false,
    sendMails: true,
    ...overrides,
  };
}

/** At a time of the first of June 2099, as a local date-time (`10:30`). */
export function placeIn(
  { reference }: { reference: string },
  time: string,
  others: { duration?: number; productReference?: string | undefined } = {},
): BookSlotRequest['place'] {
  const value = {
    timeslotReference: reference,
    start: `2099-06-01T${time}`,
    productReference: 'product@test',
    ...others,
  };
  return { $case: 'timeslot', value };
}

export function customerOf(customerReference: string): Pick<BookSlotRequest, 'state' | 'customer'> {
  return { state: ParticipationState.BOOKED, customer: { $case: 'customerReference', value: customerReference } };
}
