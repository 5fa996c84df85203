import ical, { ICalAttendeeRole, ICalAttendeeStatus, ICalCalendarMethod, type ICalEvent, ICalEventBusyStatus, ICalEventStatus } from 'ical-generator';
import { tzlib_get_ical_block as blockOf, tzlib_get_offset as offsetOf } from 'timezones-ical-library';

/** REQUEST puts a booking into the person's calendar, CANCEL takes it out again. */
export type CalendarMethod = 'REQUEST' | 'CANCEL';

/** A booking as the calendar of the person who booked sees it. Texts are clean already. */
export interface CalendarBooking {
  participationId: string;
  /** Of the participation: rises with every change, so that the newest word counts in whatever order mails arrive. */
  version: number;
  method: CalendarMethod;
  summary: string;
  start: Date;
  end: Date;
  /** IANA name. */
  timeZone: string;
  location: string;
  description: string;
  /** Sends the mail: clients take a cancellation only from the sender of the invitation. */
  organizer: { name: string; address: string };
  attendee: { name: string; address: string };
  writtenAt: Date;
}

/** An iTIP message (RFC 5546) about one booking, as text/calendar. */
export function writeCalendar(booking: CalendarBooking): string {
  const period = [booking.start, booking.end].map((time) => Temporal.Instant.fromEpochMilliseconds(time.getTime()));
  const zone = findZone(booking.timeZone, period);
  const [start, end] = period.map((instant) => instant.toZonedDateTimeISO(zone?.id ?? 'UTC'));
  const cancelled = booking.method === 'CANCEL';
  const calendar = ical({
    prodId: { company: 'Scheduling', product: 'Notification', language: 'EN' },
    method: cancelled ? ICalCalendarMethod.CANCEL : ICalCalendarMethod.REQUEST,
    timezone: zone ? { name: null, generator: () => zone.block } : null,
  });
  const event = calendar.createEvent({
    id: uidOf(booking.participationId),
    sequence: booking.version,
    stamp: booking.writtenAt,
    start: start!,
    end: end!,
    timezone: zone?.id ?? null,
    summary: booking.summary,
    location: booking.location || null,
    description: booking.description || null,
    status: cancelled ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
    busystatus: cancelled ? ICalEventBusyStatus.FREE : ICalEventBusyStatus.BUSY,
    organizer: { name: parameterText(booking.organizer.name), email: booking.organizer.address },
  });
  addAttendee(event, booking.attendee);
  // RFC 5545, 3.1: the last line ends with a line break, too. The library leaves that one out.
  return `${calendar.toString()}\r\n`;
}

/** The same in every mail about a participation, for ever. */
export function uidOf(participationId: string): string {
  return `${participationId}@participation.scheduling`;
}

/** Whoever booked has accepted: no client shall ask again. */
function addAttendee(event: ICalEvent, { name, address }: CalendarBooking['attendee']): void {
  event.createAttendee({
    name: parameterText(name),
    email: address,
    rsvp: false,
    role: ICalAttendeeRole.REQ,
    status: ICalAttendeeStatus.ACCEPTED,
  });
}

/** A quoted parameter value holds no quotation mark (RFC 5545, 3.1), and some readers stop at a backslash. */
function parameterText(text: string): string {
  return text.replaceAll('"', '\u201D').replaceAll('\\', '/');
}

/**
 * The zone's VTIMEZONE, when by its rules every local time means the instant that is meant. Its rules are those of today, so a time in a
 * year with rules of its own is written in UTC instead, and so is a local time that occurs twice: then undefined.
 */
function findZone(name: string, instants: Temporal.Instant[]): { id: string; block: string } | undefined {
  const [block, line] = blockOf(name);
  const id = line?.replace(/^TZID=/, '');
  if (block === undefined || id === undefined || !block.startsWith('BEGIN:VTIMEZONE')) return undefined;
  const agree = instants.every((instant) => {
    const local = instant.toZonedDateTimeISO(id);
    const [date, time] = local.toPlainDateTime().toString({ smallestUnit: 'minute' }).split('T') as [string, string];
    const [first, last] = (['earlier', 'later'] as const).map((disambiguation) => local.toPlainDateTime().toZonedDateTime(id, { disambiguation }));
    return first!.equals(last!) && offsetOf(id, date, time) === local.offset.replace(':', '');
  });
  return agree ? { id, block } : undefined;
}
