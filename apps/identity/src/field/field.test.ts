import { describe, expect, it } from 'vitest';
import { addressFamilies, derivedAddress } from './email-address.ts';
import { parseTimeZone } from './time-zone.ts';

describe('an e-mail address', () => {
  it('gets a number after its local part', () => {
    expect([1, 2, 10].map((number) => derivedAddress('ann@b.example', number))).toEqual([
      'ann1@b.example',
      'ann2@b.example',
      'ann10@b.example',
    ]);
  });

  it('belongs to one family with every address derived from it, directly or indirectly', () => {
    const families = addressFamilies('ann@b.example');
    expect(families).toHaveLength(1);
    for (const number of [1, 2, 12, 999_999_999]) {
      const derived = derivedAddress('ann@b.example', number)!;
      expect(addressFamilies(derived)).toEqual(families);
      expect(addressFamilies(derivedAddress(derived, number)!)).toEqual(families);
    }
    expect(addressFamilies('anne@b.example')).not.toEqual(families);
    expect(addressFamilies('ann@c.example')).not.toEqual(families);
  });

  it.each([
    `${'𝒶'.repeat(64)}@b.example`,
    `${'a'.repeat(60)}1234@b.example`,
    `ann@${'b'.repeat(250)}`,
    `a@${'b'.repeat(252)}`,
  ])('has the families of all addresses derived from it, shortened ones too (%s)', (email) => {
    const families = addressFamilies(email);
    for (const number of [1, 9, 10, 99, 123_456_789]) {
      const derived = derivedAddress(email, number);
      if (derived === undefined) continue;
      expect(Array.from(derived).length).toBeLessThanOrEqual(254);
      expect(Array.from(derived.split('@')[0]!).length).toBeLessThanOrEqual(64);
      expect(families).toContain(addressFamilies(derived)[0]);
    }
  });
});

describe('a time zone', () => {
  it.each([
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/zurich', 'Europe/Zurich'],
    ['utc', 'UTC'],
    ['Asia/Kolkata', 'Asia/Kolkata'],
  ])('%j is %j', (text, name) => expect(parseTimeZone(text)).toBe(name));
  it.each(['', 'Mars/Base', '+01:00', '2026-01-01T00:00[Europe/Berlin]'])('is not %j', (text) =>
    expect(parseTimeZone(text)).toBeUndefined(),
  );
});
