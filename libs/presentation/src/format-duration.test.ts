import { expect, it } from 'vitest';
import { formatDuration } from './format-duration.ts';

it.each([
  [1, 'en', '1 minute'],
  [60, 'en', '60 minutes'],
  [90, 'de', '90 Minuten'],
  [120, 'en', '2 hours'],
  [105, 'de', '1 Stunde, 45 Minuten'],
  [1_500, 'en', '25 hours'],
])('%d minutes in %s: %s', (minutes, locale, text) => expect(formatDuration(minutes, locale)).toBe(text));
