/** Marks that change the direction of the text that follows, even beyond the text that contains them. */
const directionOverrides = /[\u202A-\u202E\u2066-\u2069]/g;

/**
 * A caller's text for one line of a mail, a header or a calendar: no line breaks or control characters, nothing that is
 * decoded again or affects what follows.
 */
export function singleLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(directionOverrides, '')
    .replaceAll(/[\p{Cc}\u2028\u2029\s]+/gu, ' ')
    .replaceAll('=?', '= ?')
    .trim();
}

/** The same for a multi-line text. */
export function multiLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(directionOverrides, '')
    .replaceAll(/\r\n?|[\u2028\u2029\u0085]/g, '\n')
    .replaceAll(/[^\P{Cc}\n\t]/gu, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}

/** A single-line text with at most so many characters, as people count them. */
export function shorten(text: string, maxLength: number): string {
  const characters = Array.from(segmenter.segment(text), ({ segment }) => segment);
  return characters.length <= maxLength
    ? text
    : `${characters
        .slice(0, maxLength - 1)
        .join('')
        .trimEnd()}…`;
}

const segmenter = new Intl.Segmenter();
