import ICAL from 'ical.js';
import { describe, expect, it } from 'vitest';
import { type CalendarBooking, writeCalendar } from './write-calendar.ts';

const booking: CalendarBooking = {
  participationId: '01990000-0000-7000-8000-00000000000a',
  version: 1,
  method: 'REQUEST',
  summary: 'Yoga',
  start: new Date('2030-07-01T08:00:00Z'),
  end: new Date('2030-07-01T09:00:00Z'),
  timeZone: 'Europe/Berlin',
  location: 'Berlin',
  description: 'Bring a mat',
  organizer: { name: 'Studio', address: 'hello@studio.example' },
  attendee: { name: 'Anna', address: 'anna@example.com' },
  writtenAt: new Date('2030-06-01T00:00:00Z'),
};

const texts: [kind: string, text: string][] = [
  ['a long word', 'a'.repeat(1_024)],
  ['letters of two octets', 'ü'.repeat(300)],
  ['letters of three octets', '日本語'.repeat(100)],
  ['emoji of several code points', '👩‍👧'.repeat(60)],
  ['an emoji at the fold', `${'a'.repeat(65)}🧘${'b'.repeat(74)}`],
  ['characters to escape', 'one, two; three\\four "five"\nsix\n\nseven: C:\\new\\n'],
];

describe('the content lines of a calendar (RFC 5545, 3.1)', () => {
  it.each(['REQUEST', 'CANCEL'] as const)('each end with CRLF, including the last one, in a %s', (method) => {
    const text = writeCalendar({ ...booking, method });
    expect(text.endsWith('END:VCALENDAR\r\n')).toBe(true);
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    expect(text).not.toContain('\r\n\r\n');
  });

  it.each(texts)('have at most 75 octets, and are read back as written: %s', (_kind, text) => {
    const calendar = writeCalendar({
      ...booking,
      summary: text,
      location: text,
      description: text,
      attendee: { ...booking.attendee, name: text },
    });
    for (const line of calendar.split('\r\n')) expect(Buffer.byteLength(line), line).toBeLessThanOrEqual(75);
    expect(calendar).not.toContain('\uFFFD');
    const event = new ICAL.Event(new ICAL.Component(ICAL.parse(calendar) as unknown[]).getFirstSubcomponent('vevent')!);
    expect(event.summary).toBe(text);
    expect(event.location).toBe(text);
    expect(event.description).toBe(text);
  });

  it('have a URL, folded like the others', () => {
    const url = `https://page.example/booking/${'aB-_9'.repeat(30)}`;
    const calendar = writeCalendar({ ...booking, url });
    for (const line of calendar.split('\r\n')) expect(Buffer.byteLength(line), line).toBeLessThanOrEqual(75);
    const event = new ICAL.Component(ICAL.parse(calendar) as unknown[]).getFirstSubcomponent('vevent')!;
    expect(event.getFirstPropertyValue('url')).toBe(url);
  });
});

describe('a published booking', () => {
  const { organizer: _organizer, attendee: _attendee, ...event } = booking;
  const published = {
    ...event,
    method: 'PUBLISH',
    status: 'TENTATIVE',
    url: 'https://book.example/base/booking/token',
  } as const;

  function parse(text: string): { calendar: ICAL.Component; event: ICAL.Component } {
    const calendar = new ICAL.Component(ICAL.parse(text) as unknown[]);
    return { calendar, event: calendar.getFirstSubcomponent('vevent')! };
  }

  it('asks nobody for an answer, and names its page', () => {
    const { calendar, event } = parse(writeCalendar(published));
    expect(calendar.getFirstPropertyValue('method')).toBe('PUBLISH');
    expect(event.getAllProperties('organizer')).toEqual([]);
    expect(event.getAllProperties('attendee')).toEqual([]);
    expect(event.getFirstPropertyValue('status')).toBe('TENTATIVE');
    expect(event.getFirstPropertyValue('url')).toBe(published.url);
  });

  it('is the event of the mails', () => {
    const [mailed, own] = [booking, published].map((each) => parse(writeCalendar(each)).event);
    for (const name of ['uid', 'sequence', 'dtstart', 'dtend', 'summary', 'location', 'description'])
      expect(own!.getFirstProperty(name)!.toJSON(), name).toEqual(mailed!.getFirstProperty(name)!.toJSON());
  });
});
