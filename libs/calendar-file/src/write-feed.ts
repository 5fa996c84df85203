import { escape, foldLines } from 'ical-generator';

/** An appointment in a calendar that programs read again and again. Texts are already cleaned. */
export interface FeedEvent {
  /** Of the appointment. */
  id: string;
  /** In seconds since 1970. */
  start: number;
  end: number;
  summary: string;
  /** Empty: none. */
  location: string;
  description: string;
  /** Whether it may still come to nothing. */
  isTentative: boolean;
}

/** What RFC 5545 says of an event, without what says which version of it this is. */
export function writeFeedEvent(event: FeedEvent): string {
  const lines = [
    `UID:${event.id}@appointment.scheduling`,
    `DTSTART:${dateTime(event.start)}`,
    `DTEND:${dateTime(event.end)}`,
    `SUMMARY:${escape(event.summary, false)}`,
    ...(event.location === '' ? [] : [`LOCATION:${escape(event.location, false)}`]),
    ...(event.description === '' ? [] : [`DESCRIPTION:${escape(event.description, false)}`]),
    `STATUS:${event.isTentative ? 'TENTATIVE' : 'CONFIRMED'}`,
    `X-MICROSOFT-CDO-BUSYSTATUS:${event.isTentative ? 'TENTATIVE' : 'BUSY'}`,
  ];
  return lines.map((line) => `${foldLines(line)}\r\n`).join('');
}

/** A VEVENT component with this content, which it has had since `changedAt`, in seconds since 1970. */
export function writeFeedVersion(content: string, changedAt: number): string {
  const changed = dateTime(changedAt);
  const version = `SEQUENCE:${changedAt - sequenceEpoch}\r\nDTSTAMP:${changed}\r\nLAST-MODIFIED:${changed}\r\n`;
  return `BEGIN:VEVENT\r\n${content}${version}END:VEVENT\r\n`;
}

/** The beginning of 2026: from there, seconds fit into the 31 bits of a SEQUENCE until 2094. */
const sequenceEpoch = Date.UTC(2026, 0) / 1_000;

/** What precedes the events of a calendar. */
export function beginFeed(name: string): string {
  const text = escape(name, false);
  const lines = [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//Scheduling//Calendar//EN',
    `NAME:${text}`,
    `X-WR-CALNAME:${text}`,
    'REFRESH-INTERVAL;VALUE=DURATION:PT15M',
    'X-PUBLISHED-TTL:PT15M',
  ];
  return lines.map((line) => `${foldLines(line)}\r\n`).join('');
}

/** What follows them. */
export const endOfFeed = 'END:VCALENDAR\r\n';

function dateTime(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replaceAll(/[-:]|\.000/g, '');
}
