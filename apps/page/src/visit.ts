import type { OwnBooking } from '@scheduling/contracts/calendar/v1';
import type { PublicProvider } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { multiLine, singleLine } from '@scheduling/presentation';
import type { SpokenLanguage } from '@scheduling/runtime';
import type { FastifyRequest } from 'fastify';
import { type BookingLinks, bookingLinks } from './booking-links.ts';
import type { Clients } from './clients.ts';
import { pageLanguage } from './page-language.ts';
import { queryOf } from './query-of.ts';
import { otherLanguageThan, type PageFrame } from './render-page.ts';
import { textsOf } from './texts/texts-of.ts';
import type { Texts } from './texts/texts.ts';

/** A person at a page about their booking. */
export interface Visit {
  booking: OwnBooking;
  provider: PublicProvider;
  texts: Texts;
  /** For dates and prices. */
  locale: string;
  links: BookingLinks;
  frame: PageFrame;
}

/** The addresses of the pages that the token of a request opens. */
export function linksOf(request: FastifyRequest, basePath: string): BookingLinks {
  const { language, isChosen } = pageLanguage(request);
  return bookingLinks(basePath, tokenOf(request), isChosen ? language : undefined);
}

/** The same under the address at which page is reached. */
export type LinksTo = (request: FastifyRequest) => BookingLinks;

/** Opens pages about the booking of a link. */
export type OpenVisit = (request: FastifyRequest, booking: OwnBooking | undefined) => Promise<Visit>;

/**
 * @param basePath under which page is reached
 */
export function createVisits({ providers }: Pick<Clients, 'providers'>, basePath: string): OpenVisit {
  return async (request, booking) => {
    // An answer of a service always has what it is about.
    const own = booking!;
    const { provider } = await providers.getPublicProvider({ providerId: own.providerId });
    return describeVisit(request, basePath, own, provider!);
  };
}

export function describeVisit(
  request: FastifyRequest,
  basePath: string,
  booking: OwnBooking,
  provider: PublicProvider,
): Visit {
  const { language, locale } = pageLanguage(request, booking.language, provider.crmLanguage);
  return {
    booking,
    provider,
    texts: textsOf[language],
    locale,
    links: linksOf(request, basePath),
    frame: describeFrame(request, language, provider),
  };
}

/** What the pages about a provider's bookings have in common. */
export function describeFrame(request: FastifyRequest, language: SpokenLanguage, provider: PublicProvider): PageFrame {
  const imprints = [provider.impressum, provider.crmImprint].map((text) => multiLine(text ?? '')).filter(Boolean);
  return {
    language,
    otherLanguageHref: queryWithLanguage(request, otherLanguageThan(language)),
    about: {
      provider: singleLine(provider.name),
      colour: provider.crmColour,
      isSandbox: provider.sandbox,
      imprints,
      privacyUrl: provider.crmPrivacyUrl,
      crm: singleLine(provider.crmName),
    },
  };
}

/** Longer than any that calendar issues. */
const maxTokenLength = 1_000;

/** The token in the path; one that cannot be one is not sent to calendar. */
export function tokenOf({ params }: FastifyRequest): string {
  const { token = '' } = params as { token?: string };
  if (isToken(token)) return token;
  throw new DomainError('link.not_found');
}

/** Whether a text can be a token. */
export function isToken(text: string): boolean {
  return text.length <= maxTokenLength && /^[\w-]+$/.test(text);
}

function queryWithLanguage(request: FastifyRequest, language: SpokenLanguage): string {
  const query = queryOf(request);
  query.set('lang', language);
  return `?${query.toString()}`;
}
