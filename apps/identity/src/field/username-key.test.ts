import { describe, expect, it } from 'vitest';
import { usernameKey } from './username-key.ts';

const invisible = ['\u00AD', '\u034F', '\u061C', '\u180E', '\u200B', '\u200C', '\u200D', '\u200E', '\u200F', '\u202A', '\u202E', '\u2060', '\u2066', '\u2069', '\uFE0F', '\uFEFF', '\u3164'];
const spaces = [' ', '\u00A0', '\u1680', '\u2002', '\u2007', '\u200A', '\u202F', '\u205F', '\u2800', '\u3000'];

describe('the key of a username', () => {
  it.each([
    ['Ann', 'aNN'],
    ['ÄÖÜ', 'a\u0308öü'],
    ['ΟΔΟΣ', 'οδος'],
    ['ПОЧТА', 'почта'],
    ['Ａｎｎ', 'ann'],
    ['ﬁnn', 'Finn'],
    ['a\u200B\u0308', 'ä'],
  ])('is the same for %j and %j', (one, other) => expect(usernameKey(one)).toBe(usernameKey(other)));

  it.each(invisible)('is the same with and without %j, wherever it stands', (character) => {
    for (const text of [`${character}ann x`, `an${character}n x`, `ann x${character}`, `ann${character} ${character}x`]) expect(usernameKey(text)).toBe('ann x');
  });

  it.each(spaces)('is the same with %j at its ends, or in place of a space, once or more often', (space) => {
    for (const text of [`ann x${space}`, `${space}ann x`, `ann${space}x`, `ann ${space}${space}x`]) expect(usernameKey(text)).toBe('ann x');
  });

  it('differs for different letters, and with and without a space', () => {
    const names = ['straße', 'strasse', 'i', 'ı', 'ann x', 'annx', 'ann', 'ａｎn2', 'аnn'];
    expect(new Set(names.map(usernameKey)).size).toBe(names.length);
  });

  it('of a key is that key', () => {
    const parts = ['İ', 'I\u0307', 'Σ', 'Å', '¨', 'ﬁ', 'ẞ', 'ﾡ', 'e', '\u0301', '①', ...invisible, ...spaces];
    for (const one of parts) {
      for (const other of parts) {
        for (const text of [one + other, `a${one}${other}b`]) expect(usernameKey(usernameKey(text))).toBe(usernameKey(text));
      }
    }
  });
});
