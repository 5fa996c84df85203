import { describe, expect, it } from 'vitest';
import { addDays, parseDateTime, parseTimeOfDay } from './date-time.ts';

describe('a date-time', () => {
  it.each([
    ['2026-07-01T10:00', 'Europe/Berlin', '2026-07-01T08:00:00.000Z'],
    ['2026-12-01T10:00', 'Europe/Berlin', '2026-12-01T09:00:00.000Z'],
    ['2026-12-01T10:00:30', 'Europe/Berlin', '2026-12-01T09:00:30.000Z'],
    ['2026-07-01T10:00Z', 'Europe/Berlin', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01T10:00:00Z', 'Europe/Berlin', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01T10:00+05:30', 'Europe/Berlin', '2026-07-01T04:30:00.000Z'],
    ['2026-07-01T10:00', 'Asia/Kolkata', '2026-07-01T04:30:00.000Z'],
    ['2026-01-15T10:00', 'Australia/Lord_Howe', '2026-01-14T23:00:00.000Z'],
    ['2026-07-15T10:00', 'Australia/Lord_Howe', '2026-07-14T23:30:00.000Z'],
    ['2028-02-29T23:59', 'Europe/Berlin', '2028-02-29T22:59:00.000Z'],
    ['2026-12-31T23:30', 'America/Santiago', '2027-01-01T02:30:00.000Z'],
  ])('%s in %s is %s', (text, zone, expected) => {
    expect(parseDateTime(text, zone).toISOString()).toBe(expected);
  });

  it.each([
    ['that DST skips takes the offset before the gap', '2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    ['that DST skips by half an hour', '2026-10-04T02:15', 'Australia/Lord_Howe', '2026-10-03T15:45:00.000Z'],
    ['that DST skips at midnight', '2026-09-06T00:30', 'America/Santiago', '2026-09-06T04:30:00.000Z'],
    ['that occurs twice is the first occurrence', '2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['that occurs twice within half an hour', '2026-04-05T01:45', 'Australia/Lord_Howe', '2026-04-04T14:45:00.000Z'],
  ])('%s', (_, text, zone, expected) => {
    expect(parseDateTime(text, zone).toISOString()).toBe(expected);
  });
});

describe('the time of day of a date-time', () => {
  it('is taken as written, even if that day has no such time', () => {
    expect(parseTimeOfDay('2026-03-29T02:30', 'Europe/Berlin').toString()).toBe('02:30:00');
  });

  it('is converted to the zone when there is an offset', () => {
    expect(parseTimeOfDay('2026-07-01T10:00Z', 'Asia/Kolkata').toString()).toBe('15:30:00');
  });
});

it.each([
  ['2026-10-01T00:00', 92, 'Europe/Berlin', '2027-01-01T00:00'],
  ['2026-03-20T09:00', 14, 'Europe/Berlin', '2026-04-03T09:00'],
  ['2026-10-20T09:00', 14, 'Australia/Lord_Howe', '2026-11-03T09:00'],
  ['2026-03-15T02:30', 14, 'Europe/Berlin', '2026-03-29T03:30'],
])('%s and %s days are in %s %s', (from, days, zone, expected) => {
  expect(addDays(parseDateTime(from, zone), days, zone)).toEqual(parseDateTime(expected, zone));
});
