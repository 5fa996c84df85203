import { expect, it } from 'vitest';
import { mutations } from './mutations.ts';
import { createCopy } from './patched-copy.ts';

it.each(Object.entries(mutations))(
  'the code still has what a copy with %s changes',
  async (_, { and = [], ...first }) => {
    await using copy = await createCopy([first, ...and]);
    expect(copy.root).not.toBe('');
  },
);
