import { expect, it } from 'vitest';
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

it.each(Object.entries(formatPatterns))(
  'the pattern of %s in the API document matches what the gateway accepts, and nothing else',
  (name, { pattern, notBlank }) => {
    const accepted = values.filter((value) => formats[name as FieldFormat].passes(value));
    expect(accepted.length).toBeGreaterThan(0);
    if (pattern !== undefined) expect(values.filter((value) => new RegExp(pattern, 'u').test(value))).toEqual(accepted);
    const notBlankOnes = accepted.filter((value) => /\S/.test(value));
    if (notBlank !== undefined)
      expect(values.filter((value) => new RegExp(notBlank, 'u').test(value))).toEqual(notBlankOnes);
  },
);
