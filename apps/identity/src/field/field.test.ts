import { describe, expect, it } from 'vitest';
import { caseInsensitiveKey } from './case-insensitive-key.ts';
import { addressFamily, derivedAddresses, isEmailAddress } from './email-address.ts';
import { parseLanguageTag } from './language-tag.ts';
import { isReference } from './reference.ts';
import { parseTimeZone } from './time-zone.ts';
import { isUuid } from './uuid.ts';

describe('a reference', () => {
  it.each(['7@crm', ' 7/?#%@crm', 'ä@ü'])('%j is one', (text) => expect(isReference(text)).toBe(true));
  it.each(['', '7', '@', '7@', '@crm', '7@crm@x', '@@'])('%j is none', (text) => expect(isReference(text)).toBe(false));
});

describe('an e-mail address', () => {
  it.each(['a@b', 'a.b+c@d.example', '"a@b"@c'])('%j is one', (text) => expect(isEmailAddress(text)).toBe(true));
  it.each(['', 'a', '@b', 'a@', 'a b@c', 'a@b c'])('%j is none', (text) => expect(isEmailAddress(text)).toBe(false));

  it('gets a number behind its local part', () => {
    expect(derivedAddresses('ann@b.example', 3)).toEqual(['ann1@b.example', 'ann2@b.example', 'ann3@b.example']);
    expect(derivedAddresses('"a@b"@c', 1)).toEqual(['"a@b"1@c']);
  });

  it('is of one family with every address that is derived from it, and from those', () => {
    const family = addressFamily('ann@b.example');
    for (const derived of derivedAddresses('ann@b.example', 12)) {
      expect(addressFamily(derived)).toBe(family);
      for (const again of derivedAddresses(derived, 12)) expect(addressFamily(again)).toBe(family);
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
  it.each(['', 'Mars/Base', '+01:00', '2026-01-01T00:00[Europe/Berlin]'])('%j is none', (text) => expect(parseTimeZone(text)).toBeUndefined());
});

describe('a language tag', () => {
  it.each([
    ['de', 'de'],
    ['EN-gb', 'en-GB'],
  ])('%j is %j', (text, tag) => expect(parseLanguageTag(text)).toBe(tag));
  it.each(['', 'x', 'de_DE', 'german language'])('%j is none', (text) => expect(parseLanguageTag(text)).toBeUndefined());
});

it('tells a uuid from other text', () => {
  expect(isUuid('0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77')).toBe(true);
  for (const text of ['', '7', '0199b5a07c3e7d2f9a412f6f0a9c1b77', '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77 ']) expect(isUuid(text)).toBe(false);
});
