import type { FieldFormat } from './fields.ts';

const controls = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`;
const timeOfDay = '(?:[01][0-9]|2[0-3]):[0-5][0-9]';

/** Has a character that is no white space, and none of those forbidden. U+FEFF is white space to some tools only. */
function visible(forbidden: string): string {
  return String.raw`[^${forbidden}]*[^\s\ufeff${forbidden}][^${forbidden}]*`;
}

/**
 * The formats of this gateway that the registry of formats does not know, as the API document tells them: as patterns
 * that the usual dialects have in common. `notBlank` is for a text that must not be blank, which has a pattern already.
 */
export const formatPatterns: Partial<Record<FieldFormat, { pattern?: string; notBlank?: string }>> = {
  line: { pattern: `^[^${controls}]*$`, notBlank: `^${visible(controls)}$` },
  'path-segment': {
    pattern: String.raw`^(?!\.\.?$)[^${controls}]*$`,
    notBlank: String.raw`^(?!\.\.?$)${visible(controls)}$`,
  },
  text: { pattern: String.raw`^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$` },
  reference: { notBlank: `^${visible(`${controls}@`)}@${visible(`${controls}@`)}$` },
  // Of the characters that nobody sees, only white space is excluded.
  username: { notBlank: `^${visible(String.raw`${controls}/?:&#\\`)}$` },
  'time-of-day': { pattern: `^${timeOfDay}$` },
  'end-time-of-day': { pattern: `^(?:${timeOfDay}|24:00)$` },
};
