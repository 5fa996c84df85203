import { spokenLanguages } from '@scheduling/runtime';
import { describe, expect, it } from 'vitest';
import { chooseLanguage, languages, missingKeys } from './language.ts';

describe('the languages', () => {
  it.each([...spokenLanguages])('%s, which users can choose, is complete', (tag) => {
    expect(missingKeys(languages.get(tag) ?? {})).toEqual([]);
  });

  it('lists the missing keys of a language', () => {
    const german = languages.get('de')!;
    const { greeting: _, ...others } = german;
    const { 'booking-confirmed': confirmed, ...mails } = german.mails!;
    const { lead: __, ...rest } = confirmed!;
    expect(missingKeys({ ...others, mails: { ...mails, 'booking-confirmed': rest } })).toEqual([
      'greeting',
      'mails.booking-confirmed.lead',
    ]);
  });

  it('falls back to English for missing texts', () => {
    languages.set('nl', {
      greeting: (name) => `Dag ${name},`,
      mails: { 'booking-confirmed': { status: 'Bevestigd' } },
    });
    const { texts } = chooseLanguage('nl-BE');
    languages.delete('nl');
    expect(texts.greeting('Jan')).toBe('Dag Jan,');
    expect(texts.mails['booking-confirmed']).toMatchObject({
      status: 'Bevestigd',
      lead: 'We look forward to seeing you.',
    });
    expect(texts.labels.where).toBe('Where');
  });

  it.each([
    ['de', ['de']],
    ['de-AT', ['de-AT', 'en']],
    ['de', ['tlh', 'de']],
    ['en-GB', ['en_GB', 'en-gb']],
    ['en', [undefined, '', 'no language', '../../config']],
  ])('chooses %s for a request', (locale, wishes) => {
    expect(chooseLanguage(...wishes).locale).toBe(locale);
  });
});
