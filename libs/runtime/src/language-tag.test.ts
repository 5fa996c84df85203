import { describe, expect, it } from 'vitest';
import { parseLanguageTag } from './language-tag.ts';

describe('a language tag', () => {
  it.each([
    ['de', 'de'],
    ['EN-gb', 'en-GB'],
  ])('%j becomes %j', (text, tag) => expect(parseLanguageTag(text)).toBe(tag));

  it.each(['', 'x', 'de_DE', 'german language'])('%j is not a language tag', (text) =>
    expect(parseLanguageTag(text)).toBeUndefined(),
  );
});
