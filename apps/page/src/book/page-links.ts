import type { SpokenLanguage } from '@scheduling/runtime';

/** An offer, and at which of its resources; undefined: at any. */
export interface Wish {
  offer: string;
  with: string | undefined;
}

/** A place that a person has chosen. */
export interface ChosenPlace extends Wish {
  /** The resource that it is at. */
  at: string;
  start: Date;
}

/** What all addresses keep once it is chosen. */
export interface Kept {
  lang: SpokenLanguage | undefined;
  /** The second time zone. */
  zone: string | undefined;
  /** The token of an invitation: for whom is booked. */
  for: string | undefined;
}

/** The addresses of a provider's booking page, as paths. */
export interface PageLinks {
  offers: string;
  week(wish: Wish, at?: { date?: string | undefined; choice?: string | undefined }): string;
  hold: string;
  form(choice: string, place: ChosenPlace): string;
  done(receipt: string): string;
}

/**
 * @param basePath under which page is reached
 */
export function pageLinks(basePath: string, providerId: string, kept: Kept): PageLinks {
  const link = (path: string, query: Record<string, string | undefined> = {}): string => {
    const given = Object.entries({ ...query, ...kept }).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(given as [string, string][]).toString();
    return `${basePath}/book/${providerId}${path}${text && `?${text}`}`;
  };
  return {
    offers: link(''),
    week: ({ offer, with: resource }, { date, choice } = {}) => link('', { offer, with: resource, date, choice }),
    hold: link('/hold'),
    form: (choice, { offer, at, start, with: resource }) =>
      link(`/form/${choice}`, { offer, at, slot: start.toISOString(), with: resource }),
    done: (receipt) => link(`/done/${receipt}`),
  };
}
