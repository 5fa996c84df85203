import type { FieldError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';

/**
 * How a CRM presents itself in mails and on pages. Absent keeps the value, an empty string clears it.
 */
export interface BrandSettings {
  logoUrl?: string | undefined;
  colour?: string | undefined;
  imprint?: string | undefined;
  privacyUrl?: string | undefined;
}

const maxUrlLength = 500;
const maxImprint = { length: 2_000, lines: 20 };
/** WCAG 2.2, 1.4.3 (AA), for text of any size. */
const minContrast = 4.5;

export function brandErrors({ logoUrl, colour, imprint, privacyUrl }: BrandSettings): FieldError[] {
  const errors: FieldError[] = [];
  if (logoUrl) errors.push(...urlErrors('/logoUrl', logoUrl));
  if (colour) errors.push(...colourErrors(colour));
  if (imprint) errors.push(...imprintErrors(parseImprint(imprint)));
  if (privacyUrl) errors.push(...urlErrors('/privacyUrl', privacyUrl));
  return errors;
}

/** The columns of the settings; an undefined one keeps its value. Only for settings without {@link brandErrors}. */
export function brandColumns({ logoUrl, colour, imprint, privacyUrl }: BrandSettings) {
  return emptyToNull({
    logoUrl: logoUrl && parseUrl(logoUrl),
    colour: colour?.toLowerCase(),
    imprint: imprint && parseImprint(imprint),
    privacyUrl: privacyUrl && parseUrl(privacyUrl),
  });
}

function urlErrors(pointer: string, url: string): FieldError[] {
  if (parseUrl(url) !== undefined) return [];
  const detail = `must be an https URL without user name, password or fragment, of at most ${maxUrlLength} characters`;
  return [{ pointer, detail }];
}

/** The normalised URL. */
function parseUrl(text: string): string | undefined {
  const url = URL.parse(text);
  const isPermitted = url?.protocol === 'https:' && url.username === '' && url.password === '' && !text.includes('#');
  return isPermitted && url.href.length <= maxUrlLength ? url.href : undefined;
}

function colourErrors(colour: string): FieldError[] {
  if (!/^#[0-9a-f]{6}$/i.test(colour))
    return [{ pointer: '/colour', detail: 'must be a colour in the format #rrggbb' }];
  const contrast = contrastWithWhite(colour);
  if (contrast >= minContrast) return [];
  const rounded = Math.floor(contrast * 100) / 100;
  return [
    {
      pointer: '/colour',
      detail: `must be darker: white text on it has a contrast of ${rounded}, and needs ${minContrast} to be readable (WCAG AA)`,
    },
  ];
}

/** Between 1 (white) and 21 (black): WCAG 2.2, contrast ratio and relative luminance. */
function contrastWithWhite(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const value = Number.parseInt(colour.slice(start, start + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
}

/** With line breaks of one kind, and no white space around it or at the end of a line. */
function parseImprint(text: string): string {
  return text
    .replaceAll('\t', ' ')
    .replaceAll(/[^\S\n]*\r?\n/g, '\n')
    .trim();
}

function imprintErrors(imprint: string): FieldError[] {
  const isBounded = imprint.length <= maxImprint.length && imprint.split('\n').length <= maxImprint.lines;
  const isPlain = !/[^\P{Cc}\n]|[\u2028\u2029]|[\u202A-\u202E\u2066-\u2069]/u.test(imprint);
  return isBounded && isPlain
    ? []
    : [
        {
          pointer: '/imprint',
          detail: `must be plain text of at most ${maxImprint.lines} lines and ${maxImprint.length} characters, without control characters and direction overrides`,
        },
      ];
}
