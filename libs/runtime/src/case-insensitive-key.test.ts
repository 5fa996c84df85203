import { describe, expect, it } from 'vitest';
import { caseInsensitiveKey } from './case-insensitive-key.ts';

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
