import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import type { PartialTexts, Texts } from './texts.ts';
import { texts as english } from './texts/en.ts';

/** The language chosen for a request. */
export interface Language {
  texts: Texts;
  /** For dates and times, such as `de-AT`: the language of the texts with the requested region. */
  locale: string;
}

/** A file in `texts/` is a language; its name is the language's tag. */
const files = (await readdir(new URL('texts/', import.meta.url))).filter((file) => file.endsWith('.ts'));

/** The languages as they are, by their tags; {@link chooseLanguage} fills their gaps. */
export const languages = new Map<string, PartialTexts>(
  await Promise.all(
    files.map(async (file): Promise<[string, PartialTexts]> => {
      const { texts } = (await import(new URL(`texts/${file}`, import.meta.url).href)) as { texts: PartialTexts };
      return [basename(file, '.ts'), texts];
    }),
  ),
);

/**
 * The first requested language that mails are written in, else English; a tag such as `de-AT` matches `de`. Missing
 * texts fall back to English.
 */
export function chooseLanguage(...wishes: (string | undefined)[]): Language {
  for (const wish of wishes) {
    const locale = localeOf(wish);
    const texts = locale && languages.get(locale.language);
    if (locale && texts) return { texts: complete(english, texts), locale: locale.baseName };
  }
  return { texts: english, locale: 'en' };
}

/** The English keys that a language lacks, such as `mails.booking-confirmed.lead`. */
export function missingKeys(texts: PartialTexts): string[] {
  return keysOf(english).filter((key) => !keysOf(texts).includes(key));
}

function localeOf(tag: string | undefined): Intl.Locale | undefined {
  try {
    return tag ? new Intl.Locale(tag) : undefined;
  } catch {
    // Not a language tag.
    return undefined;
  }
}

function complete<Section extends object>(fallback: Section, given: object): Section {
  const entries = Object.entries(fallback).map(([key, value]: [string, unknown]) => {
    const own = (given as Record<string, unknown>)[key];
    return [key, isSection(value) ? complete(value, isSection(own) ? own : {}) : (own ?? value)];
  });
  return Object.fromEntries(entries) as Section;
}

function keysOf(section: object, prefix = ''): string[] {
  return Object.entries(section).flatMap(([key, value]: [string, unknown]) =>
    isSection(value) ? keysOf(value, `${prefix}${key}.`) : [`${prefix}${key}`],
  );
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
