import { KeyScope } from '@scheduling/contracts/identity/v1';
import { RequestError } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a key must have, or one that includes it. Every route of a CRM names one. */
    keyScope?: Scope;
  }
}

const messages = { read: KeyScope.READ, book: KeyScope.BOOK, all: KeyScope.ALL } as const;

/** What a key may do (interface 5.1). */
export type Scope = keyof typeof messages;

/** Each includes the ones before it. */
export const scopes = Object.keys(messages) as Scope[];

/** The config of a route that a key with this scope may call, and those with the ones after it. */
export const needsRead = { keyScope: 'read' } as const;
export const needsBook = { keyScope: 'book' } as const;
export const needsAll = { keyScope: 'all' } as const;

/** Identity authenticates no key with another scope. */
export const enforcedScopes: KeyScope[] = Object.values(messages);

/** Of a key, in a message of identity. An older version has no scopes: its keys may do everything. */
export function parseScope(message: KeyScope | undefined): Scope | undefined {
  return message === undefined ? 'all' : scopes.find((scope) => messages[scope] === message);
}

/** Rejects with `key.scope_insufficient`. */
export function requireScope(held: Scope, needed: Scope | undefined): void {
  const included = scopes.slice(0, scopes.indexOf(held) + 1);
  if (needed !== undefined && included.includes(needed)) return;
  throw new RequestError('key.scope_insufficient', {
    detail: `This key has the scope ${held}. This operation needs ${needed}.`,
  });
}
