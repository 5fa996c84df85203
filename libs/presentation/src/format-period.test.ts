import { describe, expect, it } from 'vitest';
import { formatMoment, formatPeriod } from './format-period.ts';

/** With one kind of space: Intl has several. */
function period(start: string, end: string, timeZone = 'Europe/Berlin', locale = 'en') {
  const { lines, zone } = formatPeriod(new Date(start), new Date(end), timeZone, locale);
  return { lines: lines.map((line) => line.replaceAll(/\s/g, ' ')), zone };
}

describe('a period in which the clock is changed', () => {
  it.each([
    {
      name: 'the time goes back',
      start: '2026-10-25T00:45Z',
      end: '2026-10-25T01:15Z',
      times: '02:45 (UTC+2) – 02:15 (UTC+1)',
    },
    {
      name: 'the hour is repeated',
      start: '2026-10-25T00:30Z',
      end: '2026-10-25T01:30Z',
      times: '02:30 (UTC+2) – 02:30 (UTC+1)',
    },
    {
      name: 'it begins before both',
      start: '2026-10-24T23:30Z',
      end: '2026-10-25T02:30Z',
      times: '01:30 (UTC+2) – 03:30 (UTC+1)',
    },
    {
      name: 'an hour is skipped',
      start: '2026-03-29T00:30Z',
      end: '2026-03-29T01:30Z',
      times: '01:30 (UTC+1) – 03:30 (UTC+2)',
    },
    {
      name: 'all is in the first of two hours',
      start: '2026-10-25T00:10Z',
      end: '2026-10-25T00:40Z',
      times: '02:10 (UTC+2) – 02:40 (UTC+2)',
    },
    {
      name: 'all is in the second of two hours',
      start: '2026-10-25T01:10Z',
      end: '2026-10-25T01:40Z',
      times: '02:10 (UTC+1) – 02:40 (UTC+1)',
    },
    {
      name: 'the end is in the first of two hours',
      start: '2026-10-24T23:30Z',
      end: '2026-10-25T00:30Z',
      times: '01:30 (UTC+2) – 02:30 (UTC+2)',
    },
    {
      name: 'German',
      start: '2026-10-25T00:45Z',
      end: '2026-10-25T01:15Z',
      locale: 'de',
      times: '02:45 Uhr (UTC+2) – 02:15 Uhr (UTC+1)',
    },
    {
      name: 'AM and PM',
      start: '2026-11-01T05:45Z',
      end: '2026-11-01T06:15Z',
      zone: 'America/New_York',
      times: '1:45 AM (UTC−4) – 1:15 AM (UTC−5)',
    },
    {
      name: 'half hours',
      start: '2026-04-04T14:45Z',
      end: '2026-04-04T15:15Z',
      zone: 'Australia/Lord_Howe',
      locale: 'de',
      times: '01:45 Uhr (UTC+11) – 01:45 Uhr (UTC+10:30)',
    },
    {
      name: 'negative half hours',
      start: '2026-11-01T03:45Z',
      end: '2026-11-01T04:45Z',
      zone: 'America/St_Johns',
      locale: 'de',
      times: '01:15 Uhr (UTC−2:30) – 01:15 Uhr (UTC−3:30)',
    },
    {
      name: 'no offset at all',
      start: '2026-10-25T00:30Z',
      end: '2026-10-25T01:30Z',
      zone: 'Europe/London',
      times: '01:30 (UTC+1) – 01:30 (UTC)',
    },
  ])('names the offsets: $name', ({ start, end, zone, locale, times }) => {
    expect(period(start, end, zone, locale).lines[1]).toBe(times);
  });

  it.each([
    [
      'Europe/Berlin',
      'en',
      ['Saturday, 24 October 2026 at 10:00 (UTC+2) –', 'Monday, 26 October 2026 at 10:00 (UTC+1)'],
    ],
    [
      'Europe/Berlin',
      'de',
      ['Samstag, 24. Oktober 2026 um 10:00 Uhr (UTC+2) –', 'Montag, 26. Oktober 2026 um 10:00 Uhr (UTC+1)'],
    ],
  ])('of several days names them, too: %s, %s', (zone, locale, lines) => {
    expect(period('2026-10-24T08:00Z', '2026-10-26T09:00Z', zone, locale).lines).toEqual(lines);
  });

  it('has the names of both times', () => {
    expect(period('2026-10-25T00:45Z', '2026-10-25T01:15Z').zone).toBe(
      'Central European Summer Time – Central European Standard Time',
    );
    expect(period('2026-10-25T00:45Z', '2026-10-25T01:15Z', 'Europe/Berlin', 'de').zone).toBe(
      'Mitteleuropäische Sommerzeit – Mitteleuropäische Normalzeit',
    );
    expect(period('2026-10-25T00:10Z', '2026-10-25T00:40Z').zone).toBe('Central European Summer Time');
    expect(period('2026-10-25T01:10Z', '2026-10-25T01:40Z').zone).toBe('Central European Standard Time');
  });
});

describe('any other period', () => {
  it.each([
    ['2026-10-25T00:00Z', '2026-10-25T02:30Z', 'Asia/Kolkata', '5:30 – 8:00 AM'],
    ['2026-10-24T23:00Z', '2026-10-24T23:45Z', 'Europe/Berlin', '01:00–01:45'],
    ['2026-10-25T02:00Z', '2026-10-25T03:00Z', 'Europe/Berlin', '03:00–04:00'],
    ['2026-03-29T01:00Z', '2026-03-29T02:00Z', 'Europe/Berlin', '03:00–04:00'],
  ])('names no offset: %s to %s in %s', (start, end, zone, times) => {
    expect(period(start, end, zone).lines[1]).toBe(times);
  });

  it.each([
    [
      'de',
      ['Montag, 1. Juni 2026', '09:00–10:30 Uhr'],
      ['Montag, 1. Juni 2026 um 09:00 Uhr –', 'Dienstag, 2. Juni 2026 um 10:30 Uhr'],
    ],
    [
      'de-AT',
      ['Montag, 1. Juni 2026', '09:00–10:30 Uhr'],
      ['Montag, 1. Juni 2026 um 09:00 Uhr –', 'Dienstag, 2. Juni 2026 um 10:30 Uhr'],
    ],
    ['en', ['Monday, 1 June 2026', '09:00–10:30'], ['Monday, 1 June 2026 at 09:00 –', 'Tuesday, 2 June 2026 at 10:30']],
    [
      'en-US',
      ['Monday, June 1, 2026', '9:00 – 10:30 AM'],
      ['Monday, June 1, 2026 at 9:00 AM –', 'Tuesday, June 2, 2026 at 10:30 AM'],
    ],
  ])('is written as its language writes times, within a day and over several: %s', (locale, day, days) => {
    expect(period('2026-06-01T07:00Z', '2026-06-01T08:30Z', 'Europe/Berlin', locale).lines).toEqual(day);
    expect(period('2026-06-01T07:00Z', '2026-06-02T08:30Z', 'Europe/Berlin', locale).lines).toEqual(days);
  });

  it.each([
    ['de', '09:00 Uhr'],
    ['en-US', '9:00 AM'],
  ])('is one time within a minute: %s', (locale, time) => {
    expect(period('2026-06-01T07:00Z', '2026-06-01T07:00:30Z', 'Europe/Berlin', locale).lines[1]).toBe(time);
  });
});

describe('a moment', () => {
  it.each([
    ['2026-12-01T13:00Z', 'Europe/Berlin', 'en', 'Tue, 1 Dec 2026, 14:00 (CET)'],
    ['2026-06-30T22:05Z', 'Europe/Berlin', 'en', 'Wed, 1 Jul 2026, 00:05 (CEST)'],
    ['2026-12-01T13:00Z', 'America/New_York', 'en', 'Tue, Dec 1, 2026, 8:00 AM (EST)'],
    ['2026-12-01T13:00Z', 'Europe/Vienna', 'de-AT', 'Di., 1. Dez. 2026, 14:00 Uhr (MEZ)'],
    // The hour that the clock shows twice.
    ['2026-10-25T00:30Z', 'Europe/Berlin', 'en', 'Sun, 25 Oct 2026, 02:30 (CEST)'],
    ['2026-10-25T01:30Z', 'Europe/Berlin', 'en', 'Sun, 25 Oct 2026, 02:30 (CET)'],
  ])('%s in %s for %s', (at, timeZone, locale, text) => {
    expect(formatMoment(new Date(at), timeZone, locale).replaceAll(/\s/g, ' ')).toBe(text);
  });
});
