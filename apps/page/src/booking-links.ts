import type { OwnPlace } from '@scheduling/contracts/calendar/v1';
import type { SpokenLanguage } from '@scheduling/runtime';

/** The addresses of the pages about a booking, as paths. */
export interface BookingLinks {
  booking(done?: Done): string;
  cancel: string;
  attend: string;
  move(date?: string): string;
  confirm(date: string, place: OwnPlace): string;
  calendar: string;
}

/** What the person has just done. */
export type Done = 'cancelled' | 'attending' | 'moved';

/**
 * @param basePath under which page is reached
 * @param language if it was chosen by the address
 */
export function bookingLinks(basePath: string, token: string, language: SpokenLanguage | undefined): BookingLinks {
  const link = (path: string, query: Record<string, string | undefined> = {}): string => {
    const given = Object.entries({ ...query, lang: language }).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(given as [string, string][]).toString();
    return `${basePath}/booking/${token}${path}${text && `?${text}`}`;
  };
  return {
    booking: (done) => link('', { done }),
    cancel: link('/cancel'),
    attend: link('/attend'),
    move: (date) => link('/move', { date }),
    confirm: (date, place) => link('/move/confirm', { date, ...placeQuery(place) }),
    calendar: link('/calendar.ics'),
  };
}

/** The page on which whoever has this token decides a request. */
export function decisionLink(basePath: string, token: string, language: SpokenLanguage | undefined): string {
  return `${basePath}/decide/${token}${language === undefined ? '' : `?lang=${language}`}`;
}

/** A place as the parameters of an address: the names that calendar has for it. */
export function placeQuery({ kind }: OwnPlace): Record<string, string> {
  switch (kind?.$case) {
    case 'timeslot':
      return { timeslot: kind.value.timeslotReference, start: kind.value.start!.toISOString() };
    case 'appointmentReference':
      return { appointment: kind.value };
    case undefined:
      return {};
  }
}
