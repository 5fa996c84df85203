import { DomainError } from '@scheduling/errors';
import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { Place } from '../slot/place.ts';
import { type InstantPeriod, type ResourceTime, timesOf } from '../slot/resource-times.ts';
import { dateAt, startOf } from '../slot/weeks.ts';
import { type BookingPage, type PageOffer, targetsOf } from './booking-page.ts';
import type { ChoiceRow } from './page-choice.ts';

/** A place that a person has chosen, or can choose. */
export interface PagePlace {
  start: Date;
  end: Date;
  resourceReference: string;
  address: Location | null;
  price: { value: number; currency: string } | undefined;
  /** Null for a free place. */
  description: string | null;
  heldUntil?: Date;
}

/** All places of an offer in a period, of one resource after the other. */
export async function readPlaces(
  dependencies: CalendarDependencies,
  page: BookingPage,
  offer: PageOffer,
  period: InstantPeriod,
  leaving?: string,
): Promise<ResourceTime[]> {
  const places: ResourceTime[] = [];
  for (const target of targetsOf(page, offer, leaving))
    for await (const place of timesOf(dependencies, target, period)) places.push(place);
  return places;
}

/** Those that begin at a moment. */
export function readPlacesAt(
  dependencies: CalendarDependencies,
  page: BookingPage,
  offer: PageOffer,
  start: Date,
): Promise<ResourceTime[]> {
  const from = Temporal.Instant.fromEpochMilliseconds(start.getTime());
  return readPlaces(dependencies, page, offer, { from, to: from.add({ milliseconds: 1 }) });
}

/** From the first moment of a date to that of the one after it. */
export function periodOfDay(date: Temporal.PlainDate, { timeZone }: BookingPage): InstantPeriod {
  return { from: startOf(date, timeZone), to: startOf(date.add({ days: 1 }), timeZone) };
}

/**
 * The places of whole days by start, and of those with the same start by resource: first the one that has the most
 * times on that day, of several such the one that the offer names first.
 */
export function byPreference(places: ResourceTime[], page: BookingPage): ResourceTime[] {
  const dayOf = (place: ResourceTime): string =>
    `${place.resourceReference} ${dateAt(place.startsAt, page.timeZone).toString()}`;
  const days = Map.groupBy(places, dayOf);
  const counts = new Map([...days].map(([day, ofDay]) => [day, new Set(ofDay.map(({ startsAt }) => startsAt)).size]));
  const countOf = (place: ResourceTime): number => counts.get(dayOf(place))!;
  return places.toSorted((a, b) => a.startsAt - b.startsAt || countOf(b) - countOf(a));
}

/** Of places in order, the first one at each start. */
export function firstAtEachStart(places: ResourceTime[]): ResourceTime[] {
  const byStart = new Map<number, ResourceTime>();
  for (const place of places) if (!byStart.has(place.startsAt)) byStart.set(place.startsAt, place);
  return [...byStart.values()];
}

/** How many persons can be at these places, of which several may overlap. */
export function countSeats(places: ResourceTime[]): number {
  let seats = 0;
  for (const ofResource of Map.groupBy(places, ({ resourceReference }) => resourceReference).values()) {
    let endsAt = Number.NEGATIVE_INFINITY;
    for (const place of ofResource.toSorted((a, b) => a.startsAt - b.startsAt)) {
      if (place.startsAt < endsAt) continue;
      seats += place.details.seats;
      ({ endsAt } = place);
    }
  }
  return seats;
}

/** What the booking of a place names. */
export function placeOf(
  { startsAt, timeslotReference, details: { appointmentReference } }: ResourceTime,
  { productReference, name, duration, price }: PageOffer,
): Place {
  if (appointmentReference !== null) return { appointmentReference };
  const start = new Date(startsAt).toISOString();
  return { timeslotReference: timeslotReference!, start, duration, productReference, description: name, price };
}

/** What the person of a place pays: as its open appointment says or, of a free place, the offer. */
function priceOf({ details }: ResourceTime, offer: PageOffer): PagePlace['price'] {
  return details.appointmentReference === null ? offer.price : (details.price ?? undefined);
}

export function toPagePlace(place: ResourceTime, offer: PageOffer): PagePlace {
  const { startsAt, endsAt, resourceReference, details } = place;
  const { address, description } = details;
  const [start, end] = [new Date(startsAt), new Date(endsAt)];
  return { start, end, resourceReference, address, description, price: priceOf(place, offer) };
}

/** The place that a hold keeps. */
export function heldPlace(hold: ChoiceRow): PagePlace {
  const { resourceReference, address, description, priceValue, priceCurrency } = hold;
  const price = priceValue === null ? undefined : { value: priceValue, currency: priceCurrency! };
  const [start, end, heldUntil] = [hold.startsAt, hold.endsAt, hold.reservedUntil!].map((text) => new Date(text)) as [
    Date,
    Date,
    Date,
  ];
  return { start, end, resourceReference, address, description, price, heldUntil };
}

const minuteMs = 60_000;

/** A place that is not among those that are free. Whoever asked for it may have had an old page. */
export function unavailable({ now, minimumNotice }: BookingPage, start: Date): DomainError {
  const isTooSoon = start.getTime() < now.getTime() + minimumNotice * minuteMs;
  return new DomainError('slot.unavailable', { reason: isTooSoon ? 'too_soon' : 'taken' });
}

/** Whether others have just taken the place, or it is no longer offered. */
export function isUnavailable(error: unknown): boolean {
  const codes: readonly string[] = ['slot.unavailable', 'timeslot.not_found', 'appointment.not_found'];
  return error instanceof DomainError && codes.includes(error.code);
}
