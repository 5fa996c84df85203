import ical, {
  ICalAttendeeRole,
  ICalAttendeeStatus,
  ICalCalendarMethod,
  type ICalEvent,
  ICalEventBusyStatus,
  ICalEventStatus,
} from 'ical-generator';
import { LRUCache } from 'lru-cache';
import { tzlib_get_ical_block as blockOf, tzlib_get_offset as offsetOf } from 'timezones-ical-library';
import { uriAddressOf } from '../ascii-address.ts';
import { occursTwice } from '../occurs-twice.ts';

/** The VTIMEZONE of a zone and its TZID line. To make them takes as long as the rest of a calendar. */
const blocks = new LRUCache<string, string[]>({ max: 100, memoMethod: (name) => [blockOf(name)].flat() });
/**
 * The offset of a zone by its VTIMEZONE, at a local date and time. To look it up takes half a millisecond, and those
 * who book the same appointment share it.
 */
const offsets = new LRUCache<string, string, [id: string, date: string, time: string]>({
  max: 1_000,
  memoMethod: (_key, _stale, { context }) => offsetOf(...context),
});

/** REQUEST adds a booking to the person's calendar, CANCEL removes it. */
export type CalendarMethod = 'REQUEST' | 'CANCEL';

/** A booking as shown in the calendar of the person who booked. Texts are already cleaned. */
export interface CalendarBooking {
  participationId: string;
  /**
   * Of the participation: increases with every change, so that the newest message wins in whatever order mails arrive.
   */
  version: number;
  method: CalendarMethod;
  summary: string;
  start: Date;
  end: Date;
  /** IANA name. */
  timeZone: string;
  location: string;
  description: string;
  /** A page about it. */
  url?: string | undefined;
  organizer: CalendarOrganizer;
  attendee: { name: string; address: string };
  writtenAt: Date;
}

/** Who receives the person's answer. */
export interface CalendarOrganizer {
  name: string;
  address: string;
  /**
   * The sender of the mail, if it is somebody else: clients accept messages about an event only from its organizer or
   * from whoever acts on its behalf.
   */
  sentBy?: string | undefined;
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
    url: booking.url ?? null,
    status: cancelled ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
    busystatus: cancelled ? ICalEventBusyStatus.FREE : ICalEventBusyStatus.BUSY,
    organizer: organizerOf(booking.organizer),
  });
  addAttendee(event, booking.attendee);
  // RFC 5545, 3.1: the last line ends with a line break too. The library omits that one.
  return `${calendar.toString()}\r\n`;
}

/** Always the same in every mail about a participation. */
export function uidOf(participationId: string): string {
  return `${participationId}@participation.scheduling`;
}

function organizerOf({ name, address, sentBy }: CalendarOrganizer): {
  name: string;
  email: string;
  sentBy: string | undefined;
} {
  return {
    name: parameterText(name),
    email: uriAddressOf(address),
    sentBy: sentBy === undefined ? undefined : uriAddressOf(sentBy),
  };
}

/** The person who booked has already accepted, so no client should ask again. */
function addAttendee(event: ICalEvent, { name, address }: CalendarBooking['attendee']): void {
  event.createAttendee({
    name: parameterText(name),
    email: uriAddressOf(address),
    rsvp: false,
    role: ICalAttendeeRole.REQ,
    status: ICalAttendeeStatus.ACCEPTED,
  });
}

/** A quoted parameter value cannot contain a quotation mark (RFC 5545, 3.1), and some readers stop at a backslash. */
function parameterText(text: string): string {
  return text.replaceAll('"', '\u201D').replaceAll('\\', '/');
}

/**
 * The zone's VTIMEZONE, if its rules map every local time to the intended instant. Otherwise undefined, and the times
 * are written in UTC: the rules are today's, so they may not fit a year with different rules, and a local time that
 * occurs twice is ambiguous.
 */
function findZone(name: string, instants: Temporal.Instant[]): { id: string; block: string } | undefined {
  const [block, line] = blocks.memo(name);
  const id = line?.replace(/^TZID=/, '');
  if (block === undefined || id === undefined || !block.startsWith('BEGIN:VTIMEZONE')) return undefined;
  const agree = instants.every((instant) => {
    const local = instant.toZonedDateTimeISO(id);
    const [date, time] = local.toPlainDateTime().toString({ smallestUnit: 'minute' }).split('T') as [string, string];
    return (
      !occursTwice(local) &&
      offsets.memo(`${id} ${date} ${time}`, { context: [id, date, time] }) === local.offset.replace(':', '')
    );
  });
  return agree ? { id, block } : undefined;
}
