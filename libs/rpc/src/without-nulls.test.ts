import { expect, it } from 'vitest';
import { withoutNulls } from './without-nulls.ts';

it('replaces null with undefined, and no other value', () => {
  expect(withoutNulls({ name: null, text: '', count: 0, flag: false })).toStrictEqual({
    name: undefined,
    text: '',
    count: 0,
    flag: false,
  });
});
