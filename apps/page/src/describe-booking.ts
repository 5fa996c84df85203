import { type OwnBooking, ParticipationState } from '@scheduling/contracts/calendar/v1';
import {
  contactOf,
  formatMoment,
  formatPeriod,
  formatPrice,
  linesOfLocation,
  singleLine,
  titleOf,
  webAddressOf,
} from '@scheduling/presentation';
import type { Done } from './booking-links.ts';
import { describeAdvice } from './describe-advice.ts';
import type { PageContent } from './render-page.ts';
import type { Situation, Subject } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/** A period as pages show it. */
export interface PeriodView {
  lines: string[];
  /** The zone of the provider, with its offset. */
  zone: string;
  /** The same in another zone. */
  also?: string | undefined;
}

/**
 * The page of a booking in its present state.
 *
 * @param done what the person has just done, according to the address
 */
export function describeBooking(visit: Visit, done: Done | undefined): PageContent {
  const { booking, provider, texts, locale } = visit;
  const situation = situationOf(booking);
  const { title, text } = texts.situations[situation];
  const where = linesOfLocation(booking.address, locale);
  const isOpen = situation === 'booked' || situation === 'requested';
  return {
    title,
    text: [text, heldUntil(visit)].filter(Boolean).join(' '),
    done: done && doneText(visit, done),
    labels: texts.labels,
    what: titleOf(booking, provider),
    period: describePeriod(visit, booking.start!, booking.end!),
    where,
    whereLink: webAddressOf(where),
    provider: singleLine(provider.name),
    contact: contactOf(provider),
    details: detailsOf(visit),
    tooLate:
      isOpen && !booking.cancellable && !booking.movable
        ? { text: texts.tooLate, advice: describeAdvice(visit) }
        : undefined,
    actions: actionsOf(visit, situation),
  };
}

export function describePeriod({ booking, locale }: Visit, start: Date, end: Date): PeriodView {
  return describeTimes({ start, end, timeZone: booking.timeZone }, locale);
}

export function describeTimes(
  { start, end, timeZone }: { start: Date; end: Date; timeZone: string },
  locale: string,
): PeriodView {
  const { lines, zone, offset } = formatPeriod(start, end, timeZone, locale);
  return { lines, zone: `${zone} (${offset})` };
}

export function situationOf({ state, start, end, now }: OwnBooking): Situation {
  switch (state) {
    case ParticipationState.RESERVED:
      return 'reserved';
    case ParticipationState.REQUESTED:
      return start! <= now! ? 'lapsed' : 'requested';
    case ParticipationState.BOOKED:
      return end! <= now! ? 'over' : 'booked';
    case ParticipationState.CANCELED:
    // There is no link to what is deleted, and a newer calendar may have states that have ended in another way.
    case ParticipationState.DELETED:
    case ParticipationState.UNSPECIFIED:
    case ParticipationState.UNRECOGNIZED:
      return 'cancelled';
    default:
      return state satisfies never;
  }
}

function heldUntil(visit: Visit): string | undefined {
  const { reservedUntil } = visit.booking;
  return reservedUntil && visit.texts.heldUntil(momentOf(visit, reservedUntil));
}

/** How pages call it. */
export function subjectOf({ state }: OwnBooking): Subject {
  return state === ParticipationState.REQUESTED ? 'request' : 'booking';
}

/** Only if it is so: the address alone says nothing. */
function doneText({ booking, texts }: Visit, done: Done): string | undefined {
  const situation = situationOf(booking);
  switch (done) {
    case 'cancelled':
      return situation === 'cancelled' ? texts.done.cancelled : undefined;
    case 'attending':
      return situation === 'booked' && booking.attendanceConfirmedAt ? texts.done.attending : undefined;
    case 'moved':
      return situation === 'booked' || situation === 'requested' ? texts.done.moved[subjectOf(booking)] : undefined;
    default:
      return done satisfies never;
  }
}

interface Detail {
  label: string;
  value: string;
}

function detailsOf(visit: Visit): Detail[] {
  const { booking, texts, locale } = visit;
  const { labels } = texts;
  const { price, maskedEmail } = booking;
  const changes = [deadline(visit), booking.attendanceConfirmedAt && texts.attendance].filter(Boolean).join(' ');
  return [
    ...(price && price.value > 0 ? [{ label: labels.price, value: formatPrice(price, locale) }] : []),
    ...(booking.name === '' ? [] : [{ label: labels.name, value: singleLine(booking.name) }]),
    ...(maskedEmail === undefined ? [] : [{ label: labels.email, value: singleLine(maskedEmail) }]),
    ...(changes === '' ? [] : [{ label: labels.changes, value: changes }]),
  ];
}

/** Until when the booking can be changed, as long as it can. */
function deadline(visit: Visit): string | undefined {
  const { booking, texts } = visit;
  const moment = (until: Date | undefined): string | undefined => until && momentOf(visit, until);
  const cancel = booking.cancellable ? moment(booking.cancellableUntil) : undefined;
  const move = booking.movable ? moment(booking.movableUntil) : undefined;
  if (cancel !== undefined && cancel === move) return texts.deadlines.both(cancel);
  return [cancel && texts.deadlines.cancel(cancel), move && texts.deadlines.move(move)].filter(Boolean).join(' ');
}

function momentOf({ booking, locale }: Visit, moment: Date): string {
  return formatMoment(moment, booking.timeZone, locale);
}

interface ActionLink {
  href: string;
  text: string;
  isMain?: boolean;
}

function actionsOf({ booking, texts, links }: Visit, situation: Situation): ActionLink[] {
  const { buttons } = texts;
  return [
    ...(booking.confirmable ? [{ href: links.attend, text: buttons.attend, isMain: true }] : []),
    ...(booking.movable ? [{ href: links.move(), text: buttons.move }] : []),
    ...(booking.cancellable ? [{ href: links.cancel, text: buttons.cancel }] : []),
    ...(situation === 'booked' || situation === 'requested' ? [{ href: links.calendar, text: buttons.calendar }] : []),
  ];
}
