import { DomainError, type SlotReason } from '@scheduling/errors';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime } from '../date-time.ts';

/** What to book: a step of a timeslot, or an open appointment. */
export type Place = TimeslotPlace | { appointmentReference: string };

interface TimeslotPlace {
  timeslotReference: string;
  /** Date-time as in the interface. */
  start: string;
  /** In minutes; absent: one raster of the timeslot. */
  duration?: number | undefined;
  /**
   * Absent, if a booking moves there: that of its present appointment. The same goes for the following fields, which an
   * appointment gets that is made there.
   */
  productReference?: string | undefined;
  description?: string | undefined;
  contactReference?: string | undefined;
  price?: { value: number; currency: string } | undefined;
}

/** What the function locks first. */
export function lockOf(place: Place): string {
  return 'appointmentReference' in place ? place.appointmentReference : place.timeslotReference;
}

/** As book_slot and move_booking read it. */
export function placeOf(place: Place, timeZone: string) {
  if ('appointmentReference' in place) return place;
  const {
    timeslotReference,
    start,
    duration = null,
    productReference = null,
    description = null,
    contactReference = null,
    price,
  } = place;
  const newReference = `${randomUUIDv7()}@scheduling`;
  return {
    timeslotReference,
    startsAt: parseDateTime(start, timeZone),
    minutes: duration,
    productReference,
    newReference,
    // A generated reference is never retried.
    contentDigest: contentDigest([newReference]).toString('hex'),
    description,
    contactReference,
    priceValue: price?.value ?? null,
    priceCurrency: price?.currency ?? null,
  };
}

const texts: Record<SlotReason, string> = {
  taken: 'The place is taken by another appointment.',
  full: 'All seats of the appointment are taken.',
  private: 'The appointment is not publicly bookable.',
  closed:
    'This is not a bookable slot: the timeslot is hidden or has no capacity, or the slot is not on its raster or not within it, or the appointment is cancelled, ' +
    'or it was made by a booking and lies in no bookable timeslot.',
  too_soon: 'The slot begins in the past, or sooner than the minimum notice of the provider allows.',
  too_late: 'The slot begins after the horizon of the provider.',
};

export function slotUnavailable(reason: SlotReason): DomainError {
  return new DomainError('slot.unavailable', { text: texts[reason], reason });
}
