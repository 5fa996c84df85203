import { expect, it } from 'vitest';
import { emptyToNull } from './empty-to-null.ts';

it('replaces an empty string with null, and keeps all others and undefined', () => {
  expect(emptyToNull({ phone: '', name: 'n', note: undefined })).toStrictEqual({
    phone: null,
    name: 'n',
    note: undefined,
  });
});
