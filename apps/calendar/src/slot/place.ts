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
  const { start, duration, price, ...others } = place;
  const newReference = `${randomUUIDv7()}@scheduling`;
  return {
    ...others,
    startsAt: parseDateTime(start, timeZone),
    minutes: duration,
    priceValue: price?.value,
    priceCurrency: price?.currency,
    newReference,
    // A generated reference is never retried.
    contentDigest: contentDigest([newReference]).toString('hex'),
  };
}
