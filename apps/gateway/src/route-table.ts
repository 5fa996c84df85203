import type { FastifyInstance } from 'fastify';
import { METHODS } from 'node:http';
import type { SendBrowserPage } from './browser-pages.ts';
import type { Scope } from './key-scopes.ts';
import { RequestError } from './problem.ts';

export interface Route {
  method: string;
  /** Pattern, such as `/crms/:crmId/user/:reference`. */
  url: string;
  keyScope: Scope | undefined;
}

/** Collects the routes registered after this call, without the HEAD that Fastify adds to every GET. */
export function collectRoutes(app: FastifyInstance): Route[] {
  const routes: Route[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const keyScope = config?.keyScope;
    for (const each of [method].flat()) if (each !== 'HEAD') routes.push({ method: each, url, keyScope });
  });
  return routes;
}

/** A route without a scope would be refused to every key: the gateway does not start with one. */
export function requireDeclaredScopes(routes: Route[]): void {
  const undeclared = routes.filter(({ url, keyScope }) => url.startsWith('/crms/') && keyScope === undefined);
  if (undeclared.length === 0) return;
  const names = undeclared.map(({ method, url }) => `${method} ${url}`).join(', ');
  throw new Error(`routes whose config has no keyScope: ${names}`);
}

/** Answers 405 with `Allow` to every method for which a known address has no route; Fastify itself would answer 404. */
export function refuseOtherMethods(app: FastifyInstance, routes: Route[]): void {
  // Methods that Fastify does not route by default; a CONNECT never becomes a request.
  for (const method of METHODS)
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  const urls = [...new Set(routes.map((route) => route.url))];
  const isServed = (method: string, url: string) =>
    urls.some((pattern) => covers(pattern, url) && app.hasRoute({ method, url: pattern }));
  const tables = urls.map((url) => ({
    url,
    ...divide(app.supportedMethods.toSorted(), (method) => isServed(method, url)),
  }));
  for (const { url, allowed, refused } of tables) {
    app.route({
      method: refused,
      url,
      schema: { hide: true },
      onRequest: async () => {
        throw new RequestError('method.not_allowed', {
          detail: `This method is not allowed here. Allowed methods: ${allowed.join(', ')}.`,
          headers: { allow: allowed.join(', ') },
        });
      },
      handler: async () => undefined,
    });
  }
}

/**
 * Whether every address of `url` is also one of the pattern: `/appointments/:reference` includes
 * `/appointments/withoutNotification`.
 */
function covers(pattern: string, url: string): boolean {
  const [parts, segments] = [pattern.split('/'), url.split('/')];
  return (
    parts.length === segments.length && parts.every((part, index) => part === segments[index] || part.startsWith(':'))
  );
}

function divide(methods: string[], isAllowed: (method: string) => boolean): { allowed: string[]; refused: string[] } {
  return { allowed: methods.filter(isAllowed), refused: methods.filter((method) => !isAllowed(method)) };
}

export function refuseUnknownRoutes(app: FastifyInstance, sendBrowserPage: SendBrowserPage): void {
  app.setNotFoundHandler((request, reply) => {
    const sent = sendBrowserPage(request, reply);
    if (sent !== undefined) return sent;
    throw new RequestError('route.not_found');
  });
}
