import type { FieldFormat } from './fields.ts';

/**
 * Of ASCII only: in PHP, patterns of generated clients compare bytes, so that a range of other characters would forbid
 * parts of letters, and `\u` is an error there.
 */
const controls = String.raw`\x00-\x1f\x7f`;
const timeOfDay = '(?:[01][0-9]|2[0-3]):[0-5][0-9]';

/** Has a character that is no white space, and none of those forbidden. */
function visible(forbidden: string): string {
  return String.raw`[^${forbidden}]*[^\s${forbidden}][^${forbidden}]*`;
}

const line = { pattern: `^[^${controls}]*$`, notBlank: `^${visible(controls)}$` };

/**
 * The formats of this gateway that the registry of formats does not know, as the API document tells them: as patterns
 * that the usual dialects have in common, which have no look-around. `notBlank` is for a text that must not be blank,
 * which has a pattern already. They reject nothing that the gateway accepts, and let pass control characters beyond
 * ASCII, and `.` and `..` as a reference.
 */
export const formatPatterns: Partial<Record<FieldFormat, { pattern?: string; notBlank?: string }>> = {
  line,
  'path-segment': line,
  text: { pattern: String.raw`^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$` },
  reference: { notBlank: `^${visible(`${controls}@`)}@${visible(`${controls}@`)}$` },
  // Of the characters that nobody sees, only white space is excluded.
  username: { notBlank: `^${visible(String.raw`${controls}/?:&#\\`)}$` },
  'time-of-day': { pattern: `^${timeOfDay}$` },
  'end-time-of-day': { pattern: `^(?:${timeOfDay}|24:00)$` },
};
