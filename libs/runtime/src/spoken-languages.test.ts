import { expect, it } from 'vitest';
import { spokenLanguage, spokenLanguages } from './spoken-languages.ts';

it.each([...spokenLanguages])('%s is supported, in every region', (language) => {
  expect(spokenLanguage(language)).toBe(language);
  expect(spokenLanguage(`${language.toUpperCase()}-AT`)).toBe(language);
});

it.each([undefined, '', 'tlh', 'not a tag!', '-de', 'deu'])('%j is not supported', (tag) => {
  expect(spokenLanguage(tag)).toBeUndefined();
});
