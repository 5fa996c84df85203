import { occursTwice, uriAddressOf } from '@scheduling/presentation';
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
interface CalendarEvent {
  participationId: string;
  /**
   * Of the participation: increases with every change, so that the newest message wins in whatever order mails arrive.
   */
  version: number;
  summary: string;
  start: Date;
  end: Date;
  /** IANA name. */
  timeZone: string;
  location: string;
  description: string;
  /** Of a page about the booking; without commas and semicolons, which the library would escape. */
  url?: string | undefined;
  writtenAt: Date;
}

/** A message to the person, which a mail carries. */
export interface CalendarBooking extends CalendarEvent {
  method: CalendarMethod;
  organizer: CalendarOrganizer;
  attendee: { name: string; address: string };
}

/** A file that the person downloads: nobody is asked to answer it. */
export interface PublishedBooking extends CalendarEvent {
  method: 'PUBLISH';
  status: 'CONFIRMED' | 'TENTATIVE' | 'CANCELLED';
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

/** A calendar (RFC 5545) with one booking, as text/calendar. */
export function writeCalendar(booking: CalendarBooking | PublishedBooking): string {
  const period = [booking.start, booking.end].map((time) => Temporal.Instant.fromEpochMilliseconds(time.getTime()));
  const zone = findZone(booking.timeZone, period);
  const [start, end] = period.map((instant) => instant.toZonedDateTimeISO(zone?.id ?? 'UTC'));
  const status = statusOf(booking);
  const calendar = ical({
    prodId: { company: 'Scheduling', product: booking.method === 'PUBLISH' ? 'Page' : 'Notification', language: 'EN' },
    method: ICalCalendarMethod[booking.method],
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
    status: ICalEventStatus[status],
    busystatus: busyStatuses[status],
  });
  if (booking.method !== 'PUBLISH') {
    event.organizer(organizerOf(booking.organizer));
    addAttendee(event, booking.attendee);
  }
  // RFC 5545, 3.1: the last line ends with a line break too. The library omits that one.
  return `${calendar.toString()}\r\n`;
}

function statusOf(booking: CalendarBooking | PublishedBooking): PublishedBooking['status'] {
  if (booking.method === 'PUBLISH') return booking.status;
  return booking.method === 'CANCEL' ? 'CANCELLED' : 'CONFIRMED';
}

const busyStatuses: Record<PublishedBooking['status'], ICalEventBusyStatus> = {
  CONFIRMED: ICalEventBusyStatus.BUSY,
  TENTATIVE: ICalEventBusyStatus.TENTATIVE,
  CANCELLED: ICalEventBusyStatus.FREE,
};

/** The same in whatever is written about a participation. */
function uidOf(participationId: string): string {
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
