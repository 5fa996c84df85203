import { describe, expect, it } from 'vitest';
import { type FieldFormat, formats } from './fields.ts';
import { formatPatterns } from './format-patterns.ts';

/** A character of each kind that a format treats in its own way. */
const visible = ['a', 'ä', '😀', '@', '.', '/', '\\', '?', ':', '&', '#'];
const characters = [...visible, ' ', '\u00a0', '\ufeff', '\t', '\n', '\0', '\u007f', '\u0085', '\u2028', '\u2029'];
const pairs = characters.flatMap((first) => characters.map((second) => first + second));
const triples = pairs.flatMap((pair) => characters.map((third) => pair + third));
const times = ['00:00', '09:59', '23:59', '24:00', '24:01', '9:00', '12:60', '12:00\n', '１２:00'];
// Required fields reject the empty string by their length.
const values = [...characters, ...pairs, ...triples, ...times];

/** What the patterns let pass. */
const isLetThrough = (value: string): boolean => /^\.\.?$|[\u0080-\u009f\u2028\u2029]/.test(value);
const isBlank = (value: string): boolean => !/\S/.test(value);

describe.each(Object.entries(formatPatterns))(
  'the pattern of %s in the API document',
  (name, { pattern, notBlank }) => {
    const accepted = values.filter((value) => formats[name as FieldFormat].passes(value));
    const patterns = [
      { text: pattern, expected: accepted },
      { text: notBlank, expected: accepted.filter((value) => !isBlank(value)) },
    ].filter(({ text }) => text !== undefined);

    it.each(patterns)(
      'matches what the gateway accepts, and of the rest only what no common pattern can exclude: $text',
      ({ text, expected }) => {
        const matched = values.filter((value) => new RegExp(text!, 'u').test(value));
        expect(expected.length).toBeGreaterThan(0);
        expect(new Set(expected).difference(new Set(matched))).toEqual(new Set());
        expect(matched.filter((value) => !isLetThrough(value))).toEqual(
          expected.filter((value) => !isLetThrough(value)),
        );
      },
    );
  },
);
