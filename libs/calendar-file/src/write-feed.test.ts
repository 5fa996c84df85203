import { multiLine, singleLine } from '@scheduling/presentation';
import fc from 'fast-check';
import ICAL from 'ical.js';
import nodeIcal from 'node-ical';
import { expect, it } from 'vitest';
import { beginFeed, endOfFeed, type FeedEvent, writeFeedEvent, writeFeedVersion } from './write-feed.ts';

const event: FeedEvent = {
  id: '01990000-0000-7000-8000-00000000000a',
  start: Date.parse('2030-07-01T08:00:00Z') / 1_000,
  end: Date.parse('2030-07-01T09:00:00Z') / 1_000,
  summary: 'Yoga (3 of 8)',
  location: 'Berlin',
  description: 'Ada Lovelace\nGrace Hopper',
  isTentative: false,
};
const changedAt = Date.parse('2026-11-29T03:00:00Z') / 1_000;

function feedOf(name: string, events: FeedEvent[]): string {
  const written = events.map((each) => writeFeedVersion(writeFeedEvent(each), changedAt));
  return beginFeed(name) + written.join('') + endOfFeed;
}

it('has one event for each appointment, in UTC', () => {
  const { description: _description, location: _location, ...bare } = event;
  const other = { ...bare, id: 'other', description: '', location: '', isTentative: true };
  expect(feedOf('Studio', [event, other]).split('\r\n')).toEqual([
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//Scheduling//Calendar//EN',
    'NAME:Studio',
    'X-WR-CALNAME:Studio',
    'REFRESH-INTERVAL;VALUE=DURATION:PT15M',
    'X-PUBLISHED-TTL:PT15M',
    'BEGIN:VEVENT',
    'UID:01990000-0000-7000-8000-00000000000a@appointment.scheduling',
    'DTSTART:20300701T080000Z',
    'DTEND:20300701T090000Z',
    'SUMMARY:Yoga (3 of 8)',
    'LOCATION:Berlin',
    'DESCRIPTION:Ada Lovelace\\nGrace Hopper',
    'STATUS:CONFIRMED',
    'X-MICROSOFT-CDO-BUSYSTATUS:BUSY',
    'SEQUENCE:28695600',
    'DTSTAMP:20261129T030000Z',
    'LAST-MODIFIED:20261129T030000Z',
    'END:VEVENT',
    'BEGIN:VEVENT',
    'UID:other@appointment.scheduling',
    'DTSTART:20300701T080000Z',
    'DTEND:20300701T090000Z',
    'SUMMARY:Yoga (3 of 8)',
    'STATUS:TENTATIVE',
    'X-MICROSOFT-CDO-BUSYSTATUS:TENTATIVE',
    'SEQUENCE:28695600',
    'DTSTAMP:20261129T030000Z',
    'LAST-MODIFIED:20261129T030000Z',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ]);
});

/** What callers send, lone surrogates and characters with a meaning in the format among it. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({
    unit: fc.constantFrom(
      '\\',
      ';',
      ',',
      '\n',
      '\r\n',
      ':',
      '"',
      'n',
      'N',
      ' ',
      '\uD800',
      '\uDC00',
      'ü',
      '日',
      '👩‍👧',
      '\u2028',
      '^',
      'a',
    ),
    maxLength: 300,
  }),
);

it('is read by two independent parsers as it was written, in lines of at most 75 octets, whatever the texts', () => {
  fc.assert(
    fc.property(text, text, text, text, (name, summary, location, description) => {
      const cleaned = {
        summary: singleLine(summary),
        location: singleLine(location),
        description: multiLine(description),
      };
      const title = singleLine(name);
      const written = feedOf(title, [event, { ...event, ...cleaned, id: 'fuzzed' }]);
      for (const line of written.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
      expect(written.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
      expect(written.endsWith('END:VCALENDAR\r\n')).toBe(true);
      expect(Buffer.from(written).toString()).toBe(written);

      const calendar = new ICAL.Component(ICAL.parse(written) as unknown[]);
      // This parser does not know the type of the property, and leaves it escaped.
      const escaped = calendar.getFirstPropertyValue('name') as string;
      expect(escaped.replaceAll(/\\([\\;,])/g, '$1')).toBe(title);
      const [, component] = calendar.getAllSubcomponents('vevent');
      const read = new ICAL.Event(component);
      expect([read.summary, read.location ?? '', read.description ?? '']).toEqual(Object.values(cleaned));

      const others = Object.values(nodeIcal.sync.parseICS(written)).filter((each) => each?.type === 'VEVENT');
      expect(others).toHaveLength(2);
      const other = others.find(({ uid }) => uid === 'fuzzed@appointment.scheduling')!;
      // This parser removes quotation marks around values and white space at their ends, and takes an escaped backslash
      // before an n for a line break.
      const hasBackslash = Object.values(cleaned).map((each) => each.includes('\\'));
      const loosely = (each: unknown, index: number) =>
        hasBackslash[index] ? 'not compared' : String(each).replaceAll('"', '').trim();
      expect([other.summary, other.location ?? '', other.description ?? ''].map(loosely)).toEqual(
        Object.values(cleaned).map(loosely),
      );
      expect([other.start.toISOString(), other.end?.toISOString()]).toEqual([
        '2030-07-01T08:00:00.000Z',
        '2030-07-01T09:00:00.000Z',
      ]);
    }),
    { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 300) },
  );
});
