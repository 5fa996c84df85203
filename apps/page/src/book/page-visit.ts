import type { BookingPage, PageOffer } from '@scheduling/contracts/calendar/v1';
import type { PublicProvider } from '@scheduling/contracts/identity/v1';
import type { SpokenLanguage } from '@scheduling/runtime';
import type { FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { pageLanguage } from '../page-language.ts';
import { otherLanguageThan, type PageFrame } from '../render-page.ts';
import { textsOf } from '../texts/texts-of.ts';
import type { Texts } from '../texts/texts.ts';
import { describeFrame } from '../visit.ts';
import { type Kept, type PageLinks, pageLinks } from './page-links.ts';
import { keptOf } from './page-request.ts';

/** A person at the booking page of a provider. */
export interface PageVisit {
  page: BookingPage;
  provider: PublicProvider;
  language: SpokenLanguage;
  texts: Texts;
  /** For dates and prices. */
  locale: string;
  kept: Kept;
  /** In which times are said, too. */
  secondZone: string | undefined;
  links: PageLinks;
  /** The same in the other language. */
  otherLinks: PageLinks;
  frame: PageFrame;
}

/** Opens pages by what the rules of their provider say, with an answer of calendar. */
export type OpenPage = (
  request: FastifyRequest,
  page: BookingPage | undefined,
  /** Of the person, if that is known. */
  language?: string,
) => Promise<PageVisit>;

/** The addresses of the provider that a request names. */
export type LinksToPages = (request: FastifyRequest) => PageLinks;

/**
 * @param basePath under which page is reached
 */
export function createPageVisits({ providers }: Pick<Clients, 'providers'>, basePath: string): OpenPage {
  return async (request, given, known) => {
    // An answer of a service always has what it is about.
    const page = given!;
    const { provider: found } = await providers.getPublicProvider({ providerId: page.providerId });
    const provider = found!;
    const { language, locale } = pageLanguage(request, known, page.invited?.language, provider.crmLanguage);
    const kept = keptOf(request);
    return {
      page,
      provider,
      language,
      texts: textsOf[language],
      locale,
      kept,
      secondZone: kept.zone === page.timeZone ? undefined : kept.zone,
      links: pageLinks(basePath, page.providerId, kept),
      otherLinks: pageLinks(basePath, page.providerId, { ...kept, lang: otherLanguageThan(language) }),
      frame: { ...describeFrame(request, language, provider), embedOn: page.embedOn },
    };
  };
}

export function findOffer({ offers }: BookingPage, key: string): PageOffer | undefined {
  return offers.find((offer) => offer.key === key);
}
