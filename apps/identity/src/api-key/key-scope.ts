import { KeyScope } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import type { ApiKeyRow } from './api-key.ts';

const messages = { read: KeyScope.READ, book: KeyScope.BOOK, all: KeyScope.ALL } as const;

export function toScopeMessage(scope: ApiKeyRow['scope']): KeyScope {
  return messages[scope];
}

/** Rejects with `key.invalid_scope`, for one of a newer version too. */
export function parseScope(message: KeyScope): ApiKeyRow['scope'] {
  const scopes = Object.keys(messages) as ApiKeyRow['scope'][];
  const scope = scopes.find((each) => messages[each] === message);
  if (scope === undefined) throw new DomainError('key.invalid_scope');
  return scope;
}
