import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { pageLanguage } from './page-language.ts';

function languageOf(lang: string | undefined, accepted: string | undefined, ...known: (string | undefined)[]) {
  const request = {
    url: lang === undefined ? '/' : `/?lang=${lang}`,
    headers: { 'accept-language': accepted },
  } as unknown as FastifyRequest;
  const { language, locale } = pageLanguage(request, ...known);
  return [language, locale];
}

describe('the language of a page', () => {
  it('is that of its address, with the region of the browser', () => {
    expect(languageOf('de', 'en-US, de-AT;q=0.5', 'en')).toEqual(['de', 'de-AT']);
    expect(languageOf('en', 'de', 'de')).toEqual(['en', 'en']);
  });

  it('is else the one that the browser prefers', () => {
    expect(languageOf(undefined, 'fr, en;q=0.5, de-CH;q=0.8', 'en')).toEqual(['de', 'de-CH']);
    expect(languageOf('fr', 'de;q=0, en', 'de')).toEqual(['en', 'en']);
  });

  it('is else the first that is known of the person, and English in the end', () => {
    expect(languageOf(undefined, 'fr, *', undefined, 'de-AT')).toEqual(['de', 'de-AT']);
    expect(languageOf(undefined, undefined, 'fr', 'de')).toEqual(['de', 'de']);
    expect(languageOf(undefined, undefined)).toEqual(['en', 'en']);
  });

  it('is not affected by what is no language tag', () => {
    expect(languageOf(undefined, 'en-!, de;q=x, de_AT', 'de')).toEqual(['de', 'de']);
  });

  it('does not take a calendar or digits from the browser', () => {
    expect(languageOf(undefined, 'de-DE-u-ca-buddhist')).toEqual(['de', 'de-DE']);
  });
});
