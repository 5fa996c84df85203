import type { FastifyInstance } from 'fastify';
import { METHODS } from 'node:http';
import type { SendBrowserPage } from './browser-pages.ts';
import { RequestError } from './problem.ts';

export interface Route {
  method: string;
  /** Pattern, such as `/crms/:crmId/user/:reference`. */
  url: string;
}

/** Collects the routes registered after this call, without the HEAD that Fastify adds to every GET. */
export function collectRoutes(app: FastifyInstance): Route[] {
  const routes: Route[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) if (each !== 'HEAD') routes.push({ method: each, url });
  });
  return routes;
}

/** Answers 405 with `Allow` to every method for which a known address has no route; Fastify itself would answer 404. */
export function refuseOtherMethods(app: FastifyInstance, routes: Route[]): void {
  // Methods that Fastify does not route by default; a CONNECT never becomes a request.
  for (const method of METHODS) if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  for (const url of new Set(routes.map((route) => route.url))) {
    const [allowed, refused] = partition(app.supportedMethods.toSorted(), (method) => app.hasRoute({ method, url }));
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

function partition<T>(values: T[], belongs: (value: T) => boolean): [T[], T[]] {
  return [values.filter(belongs), values.filter((value) => !belongs(value))];
}

export function refuseUnknownRoutes(app: FastifyInstance, sendBrowserPage: SendBrowserPage): void {
  app.setNotFoundHandler((request, reply) => {
    const sent = sendBrowserPage(request, reply);
    if (sent !== undefined) return sent;
    throw new RequestError('route.not_found');
  });
}
