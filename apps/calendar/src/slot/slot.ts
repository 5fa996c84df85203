import { toTimeJson } from '@scheduling/runtime';
import type { ParticipationRecord } from '../participation/participation.ts';
import { toLocationJson } from '../appointment/appointment-json.ts';
import type { Location } from '../db/schema.ts';

/** A place in an open appointment, or one in which an appointment is made by booking it. */
export interface Slot extends Omit<SlotRecord, 'startsAt' | 'endsAt' | 'appointmentReference' | 'productReference'> {
  /** In epoch milliseconds. */
  startsAt: number;
  endsAt: number;
  /** Null for an open appointment that is not a slot of a timeslot. */
  timeslotReference: string | null;
  /** Null for a free place. */
  appointmentReference: string | null;
  productReference: string | null;
}

/** As slot_record writes it: an appointment. */
export interface SlotRecord {
  startsAt: string;
  endsAt: string;
  resourceReference: string;
  appointmentReference: string;
  productReference: string;
  description: string | null;
  capacity: number;
  /** Of these, how many are free. */
  seats: number;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
}

/** What is booked, and where. */
export interface Booking {
  participation: ParticipationRecord;
  slot: Slot;
}

/** A slot as an object of the REST interface. */
export function writeSlot(slot: Slot): string {
  return JSON.stringify({
    start: toTimeJson(new Date(slot.startsAt)),
    end: toTimeJson(new Date(slot.endsAt)),
    resourceReference: slot.resourceReference,
    timeslotReference: slot.timeslotReference,
    appointmentReference: slot.appointmentReference,
    productReference: slot.productReference,
    description: slot.description,
    capacity: slot.capacity,
    seats: slot.seats,
    address: toLocationJson(slot.address),
    price: slot.priceValue === null ? null : { value: slot.priceValue, currency: slot.priceCurrency },
  });
}
