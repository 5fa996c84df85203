import type { Location } from '@scheduling/contracts/calendar/v1';
import { multiLine, singleLine } from './clean-text.ts';

/** The title of an appointment: its description, or else the provider's name. */
export function titleOf({ description }: { description?: string | undefined }, provider: { name: string }): string {
  return singleLine(description ?? '') || singleLine(provider.name);
}

/**
 * Zip codes and house numbers come before or after the name, depending on the country; both orders are understood
 * everywhere.
 */
export function linesOfLocation(location: Location | undefined, locale: string): string[] {
  switch (location?.kind?.$case) {
    case 'text':
      return multiLine(location.kind.value).split('\n').filter(Boolean);
    case 'address': {
      const { street, number, zip, city, countryCode } = location.kind.value;
      return [[street, number], [zip, city], [countryName(countryCode, locale)]]
        .map((line) => singleLine(line.filter(Boolean).join(' ')))
        .filter(Boolean);
    }
    case undefined:
      return [];
  }
}

/** Of all codes that no country has, the only one with a name: "Unknown Region". */
const noCountry = 'ZZ';

function countryName(code: string | undefined, locale: string): string | undefined {
  // Anything that is not a country code is left as it is.
  if (!code || !/^[A-Z]{2}$/i.test(code)) return code;
  const region = code.toUpperCase();
  return region === noCountry ? region : new Intl.DisplayNames(locale, { type: 'region' }).of(region);
}

/** Set when the place is the URL of a page, such as a video call. */
export function webAddressOf([text, ...others]: string[]): string | undefined {
  if (text === undefined || others.length > 0 || !/^https?:\/\/\S+$/i.test(text)) return undefined;
  return URL.parse(text)?.href;
}
