import { expect, it } from 'vitest';
import { linesOfLocation } from './describe-place.ts';

it.each([
  ['at', 'Österreich'],
  ['DE', 'Deutschland'],
  ['zz', 'ZZ'],
  ['qq', 'QQ'],
  ['Austria', 'Austria'],
])('the country of an address is named, if there is one with the code: %s', (countryCode, country) => {
  const value = { street: 'Hauptplatz', number: '1', zip: '8010', city: 'Graz', countryCode };
  expect(linesOfLocation({ kind: { $case: 'address', value } }, 'de')).toEqual(['Hauptplatz 1', '8010 Graz', country]);
});
