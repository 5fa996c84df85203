import { describe, expect, it } from 'vitest';
import { caseInsensitiveKey } from './case-insensitive-key.ts';
import { addressFamily, derivedAddress } from './email-address.ts';
import { parseTimeZone } from './time-zone.ts';

describe('an e-mail address', () => {
  it('gets a number after its local part', () => {
    expect([1, 2, 10].map((number) => derivedAddress('ann@b.example', number))).toEqual(['ann1@b.example', 'ann2@b.example', 'ann10@b.example']);
  });

  it('belongs to one family with every address derived from it, directly or indirectly', () => {
    const family = addressFamily('ann@b.example');
    for (const number of [1, 2, 12, 999_999_999]) {
      const derived = derivedAddress('ann@b.example', number);
      expect(addressFamily(derived)).toBe(family);
      expect(addressFamily(derivedAddress(derived, number))).toBe(family);
    }
    expect(addressFamily('anne@b.example')).not.toBe(family);
    expect(addressFamily('ann@c.example')).not.toBe(family);
  });
});

describe('a case-insensitive key', () => {
  it.each([
    ['Ann', 'aNN'],
    ['ÄÖÜ', 'äöü'],
    ['A\u0308', 'ä'],
    ['ΟΔΟΣ', 'οδος'],
    ['ПОЧТА', 'почта'],
    ['ẞ', 'ß'],
  ])('is the same for %j and %j', (one, other) => expect(caseInsensitiveKey(one)).toBe(caseInsensitiveKey(other)));

  it.each(['İ', 'I\u0307', 'ΟΔΟΣ', 'Å'])('of a key is that key (%j)', (text) => {
    const key = caseInsensitiveKey(text);
    expect(caseInsensitiveKey(key)).toBe(key);
  });

  it('differs for different letters', () => {
    expect(caseInsensitiveKey('straße')).not.toBe(caseInsensitiveKey('strasse'));
    expect(caseInsensitiveKey('i')).not.toBe(caseInsensitiveKey('ı'));
  });
});

describe('a time zone', () => {
  it.each([
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/zurich', 'Europe/Zurich'],
    ['utc', 'UTC'],
    ['Asia/Kolkata', 'Asia/Kolkata'],
  ])('%j is %j', (text, name) => expect(parseTimeZone(text)).toBe(name));
  it.each(['', 'Mars/Base', '+01:00', '2026-01-01T00:00[Europe/Berlin]'])('is not %j', (text) => expect(parseTimeZone(text)).toBeUndefined());
});
