import { describe, expect, it } from 'vitest';
import { requireScope, type Scope, scopes } from './key-scopes.ts';

/** The scope of a key, and what it includes. */
const included: [held: Scope, needed: Scope[]][] = [
  ['read', ['read']],
  ['book', ['read', 'book']],
  ['all', ['read', 'book', 'all']],
];

describe.each(included)('a key with the scope %s', (held, permitted) => {
  it('may do what its scope includes', () => {
    for (const needed of permitted) expect(() => requireScope(held, needed)).not.toThrow();
  });

  it('is refused the rest, with both scopes named, and what has no scope', () => {
    for (const needed of [...scopes.filter((each) => !permitted.includes(each)), undefined])
      expect(() => requireScope(held, needed)).toThrow(
        expect.objectContaining({
          code: 'key.scope_insufficient',
          message: `This key has the scope ${held}. This operation needs ${needed}.`,
        }),
      );
  });
});
