import { describe, expect, it } from 'vitest';
import { parseExpiry } from './expiry.ts';

const now = Temporal.Instant.from('2026-11-21T10:00:00Z');

describe('parseExpiry', () => {
  it.each([
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T12:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31T12:00+01:00', '2027-01-31T11:00:00.000Z'],
    ['30m', '2026-11-21T10:30:00.000Z'],
    ['12h', '2026-11-21T22:00:00.000Z'],
    ['90d', '2027-02-19T10:00:00.000Z'],
    ['2w', '2026-12-05T10:00:00.000Z'],
    ['P1Y', '2027-11-21T10:00:00.000Z'],
  ])('reads %s', (text, expected) => {
    expect(parseExpiry(text, now).toISOString()).toBe(expected);
  });

  it.each(['soon', '', '90', '2027-13-01', '-5d'])('rejects "%s"', (text) => {
    expect(() => parseExpiry(text, now)).toThrow(/neither a date/);
  });
});
