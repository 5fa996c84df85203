import type { GetParticipationMailDataResponse, Location } from '@scheduling/contracts/calendar/v1';
import type { Provider } from '@scheduling/contracts/identity/v1';
import { multiLine, singleLine } from './clean-text.ts';
import { formatPeriod, type Period } from './format-period.ts';

/** An appointment as mails show it. */
export interface AppointmentView {
  title: string;
  period: Period;
  where: string[];
  /** Set when the place is the URL of a page, such as a video call. */
  link?: string | undefined;
  details: Detail[];
}

export interface Detail {
  label: string;
  value: string;
}

/** Of an appointment, as calendar sends it: start and end are always there. */
export type AppointmentFacts = Pick<GetParticipationMailDataResponse, 'description' | 'start' | 'end' | 'address'>;

export function describeAppointment(
  appointment: AppointmentFacts,
  provider: Provider,
  locale: string,
  details: Detail[] = [],
): AppointmentView {
  const where = linesOfLocation(appointment.address, locale);
  return {
    title: titleOf(appointment, provider),
    period: formatPeriod(appointment.start!, appointment.end!, provider.timeZone, locale),
    where,
    link: where.length === 1 ? webAddress(where[0]!) : undefined,
    details,
  };
}

/** The title of an appointment: its description, or else the provider's name. */
export function titleOf({ description }: AppointmentFacts, provider: Provider): string {
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

function countryName(code: string | undefined, locale: string): string | undefined {
  // Anything that is not a country code is left as it is.
  return code && /^[A-Z]{2}$/i.test(code)
    ? (new Intl.DisplayNames(locale, { type: 'region' }).of(code.toUpperCase()) ?? code)
    : code;
}

function webAddress(text: string): string | undefined {
  const url = /^https?:\/\/\S+$/i.test(text) ? URL.parse(text) : null;
  return url?.href;
}
