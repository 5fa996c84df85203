import { uriAddressOf } from './ascii-address.ts';
import { singleLine } from './clean-text.ts';

/** A contact option. */
export interface ContactLine {
  text: string;
  /** Undefined if it is not a callable number. */
  link: string | undefined;
}

/** A provider's contact options, one per line. */
export function contactOf({
  email,
  phone,
  mobile,
}: {
  email?: string | undefined;
  phone?: string | undefined;
  mobile?: string | undefined;
}): ContactLine[] {
  const line = (text: string, link: (text: string) => string | undefined): ContactLine => ({ text, link: link(text) });
  return [
    ...(email === undefined ? [] : [line(singleLine(email), mailLink)]),
    ...[phone, mobile].filter((number) => number !== undefined).map((number) => line(singleLine(number), callLink)),
  ];
}

function mailLink(address: string): string {
  return `mailto:${uriAddressOf(address)}`;
}

/**
 * RFC 3966. Any text can be stored as a number. One with words in it, or with more digits than a number has (E.164), is
 * not linked.
 */
function callLink(number: string): string | undefined {
  const dialled = number.replace(/^00/, '+');
  // The (0) is not dialled after a country code.
  const digits = (dialled.startsWith('+') ? dialled.replace('(0)', '') : dialled).replaceAll(/[\s()/.\p{Dash}]/gu, '');
  return /^\+?\d{3,15}$/.test(digits) ? `tel:${digits}` : undefined;
}
