import { expect, it } from 'vitest';
import { isUuid, nameUuid } from './uuid.ts';

it('distinguishes a uuid from other text', () => {
  expect(isUuid('0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77')).toBe(true);
  for (const text of ['', '7', '0199b5a07c3e7d2f9a412f6f0a9c1b77', '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77 '])
    expect(isUuid(text)).toBe(false);
});

it('derives a uuid from a namespace and a name', () => {
  // The example of RFC 9562, appendix A.4.
  expect(nameUuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')).toBe(
    '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  );
});
