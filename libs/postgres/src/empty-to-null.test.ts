import { expect, it } from 'vitest';
import { emptyToNull } from './empty-to-null.ts';

it('replaces an empty text by null, and keeps the others and what is undefined', () => {
  expect(emptyToNull({ phone: '', name: 'n', note: undefined })).toStrictEqual({ phone: null, name: 'n', note: undefined });
});
