import { expect, it } from 'vitest';
import { isUuid } from './uuid.ts';

it('distinguishes a uuid from other text', () => {
  expect(isUuid('0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77')).toBe(true);
  for (const text of ['', '7', '0199b5a07c3e7d2f9a412f6f0a9c1b77', '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77 '])
    expect(isUuid(text)).toBe(false);
});
