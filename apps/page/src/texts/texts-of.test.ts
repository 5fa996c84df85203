import { expect, it } from 'vitest';
import { textsOf } from './texts-of.ts';

/** The texts by their keys; functions are called with an example. */
function flatten(value: unknown, key = ''): [key: string, text: string][] {
  if (typeof value === 'function') return [[key, (value as (text: string) => string)('EXAMPLE')]];
  if (typeof value === 'string') return [[key, value]];
  return Object.entries(value as object).flatMap(([name, inner]) => flatten(inner, `${key}.${name}`));
}

const same = new Set(['.labels.name', '.book.form.labels.name']);

it('every text exists in both languages, is not empty, and says what it is given', () => {
  const [german, english] = [flatten(textsOf.de), new Map(flatten(textsOf.en))];
  expect(german.length).toBe(english.size);
  for (const [key, text] of german) {
    const other = english.get(key)!;
    expect([text, other]).not.toContain('');
    expect(text.includes('EXAMPLE'), key).toBe(other.includes('EXAMPLE'));
    if (!same.has(key)) expect(text, key).not.toBe(other);
  }
});
