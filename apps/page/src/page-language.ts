import { type SpokenLanguage, spokenLanguage, spokenLanguages } from '@scheduling/runtime';
import type { FastifyRequest } from 'fastify';
import { queryOf } from './query-of.ts';

export interface PageLanguage {
  language: SpokenLanguage;
  /** For dates and prices, such as `de-AT`: the language with the requested region. */
  locale: string;
  /** By the address of the page: links carry it on. */
  isChosen: boolean;
}

/**
 * The language of the address, else the first of the browser's that pages exist in, else of those that are known of the
 * person, else English.
 */
export function pageLanguage(request: FastifyRequest, ...known: (string | undefined)[]): PageLanguage {
  const lang = queryOf(request).get('lang');
  const chosen = spokenLanguages.find((language) => language === lang);
  const accepted = acceptedLanguages(request.headers['accept-language'] ?? '');
  if (chosen !== undefined) {
    const locale = accepted.map(localeOf).find((tag) => tag?.language === chosen);
    return { language: chosen, locale: locale?.baseName ?? chosen, isChosen: true };
  }
  for (const tag of [...accepted, ...known]) {
    const [language, locale] = [spokenLanguage(tag), localeOf(tag)];
    if (language !== undefined && locale !== undefined) return { language, locale: locale.baseName, isChosen: false };
  }
  return { language: 'en', locale: 'en', isChosen: false };
}

/** The tags of an Accept-Language, the preferred ones first (RFC 9110 12.5.4). */
function acceptedLanguages(header: string): string[] {
  return header
    .split(',')
    .map((range) => {
      const [tag = '', ...parameters] = range.split(';').map((part) => part.trim());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return { tag, weight: weight === undefined ? 1 : Number(weight) };
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag);
}

/** Undefined for what is no language tag. */
function localeOf(tag: string | undefined): Intl.Locale | undefined {
  try {
    return tag ? new Intl.Locale(tag) : undefined;
  } catch {
    return undefined;
  }
}
