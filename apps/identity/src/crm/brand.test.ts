import { describe, expect, it } from 'vitest';
import { brandColumns, brandErrors } from './brand.ts';

const pointersOf = (settings: Parameters<typeof brandErrors>[0]) => brandErrors(settings).map(({ pointer }) => pointer);

describe('the colour of a CRM', () => {
  it.each(['#000000', '#767676', '#2450c8', '#E00000', '#008000'])('can carry white text: %s', (colour) => {
    expect(brandErrors({ colour })).toEqual([]);
    expect(brandColumns({ colour }).colour).toBe(colour.toLowerCase());
  });

  it.each([
    ['#777777', '4.47'],
    ['#ff0000', '3.99'],
    ['#ffff00', '1.07'],
    ['#ffffff', '1'],
  ])('is rejected if white text on it is hard to read, with the contrast: %s', (colour, contrast) => {
    expect(brandErrors({ colour })).toEqual([
      {
        pointer: '/colour',
        detail: `must be darker: white text on it has a contrast of ${contrast}, and needs 4.5 to be readable (WCAG AA)`,
      },
    ]);
  });

  it.each(['red', '#fff', '2450c8', '#2450c8;', '#2450c8\n', 'rgb(0,0,0)', '#00000000'])(
    'has the format #rrggbb, unlike %j',
    (colour) => {
      expect(brandErrors({ colour })).toEqual([
        { pointer: '/colour', detail: 'must be a colour in the format #rrggbb' },
      ]);
    },
  );
});

describe.each(['logoUrl', 'privacyUrl'] as const)('the %s of a CRM', (setting) => {
  it.each([
    ['https://cdn.example/logo.png?v=2', 'https://cdn.example/logo.png?v=2'],
    ['HTTPS://Cdn.Example:443/a b"><x>.png', 'https://cdn.example/a%20b%22%3E%3Cx%3E.png'],
  ])('is an https URL, which is normalised: %s', (url, normalised) => {
    expect(brandErrors({ [setting]: url })).toEqual([]);
    expect(brandColumns({ [setting]: url })[setting]).toBe(normalised);
  });

  it.each([
    'http://cdn.example/logo.png',
    'data:image/png;base64,AA',
    'javascript:alert(1)',
    '/logo.png',
    'https://user:secret@cdn.example/',
    'https://cdn.example/#x',
    `https://cdn.example/${'a'.repeat(500)}`,
  ])('is nothing else: %s', (url) => {
    expect(pointersOf({ [setting]: url })).toEqual([`/${setting}`]);
  });
});

describe('the imprint of a CRM', () => {
  it('has lines, whose ends and surroundings do not count', () => {
    const imprint = '\n  Acme GmbH \r\nHRB\t1\n\nבעלים: 👩‍👧\n';
    expect(brandErrors({ imprint })).toEqual([]);
    expect(brandColumns({ imprint }).imprint).toBe('Acme GmbH\nHRB 1\n\nבעלים: 👩‍👧');
    expect(brandErrors({ imprint: `${'line\n'.repeat(19)}line` })).toEqual([]);
    expect(brandErrors({ imprint: 'a'.repeat(2_000) })).toEqual([]);
  });

  it.each(['a'.repeat(2_001), `${'line\n'.repeat(20)}line`, 'a\u0007b', 'a\u2028b', '\u202Etxet'])(
    'is bounded, and plain text: %j',
    (imprint) => {
      expect(pointersOf({ imprint })).toEqual(['/imprint']);
    },
  );
});

it('what is absent is kept, and what is empty is cleared', () => {
  const cleared = { logoUrl: '', colour: '', imprint: '', privacyUrl: '' };
  expect(brandErrors(cleared)).toEqual([]);
  expect(brandColumns(cleared)).toEqual({ logoUrl: null, colour: null, imprint: null, privacyUrl: null });
  expect(brandColumns({ imprint: ' \n ' }).imprint).toBeNull();
  expect(brandColumns({})).toEqual({});
});
