import {
  fastify,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { handleConnectionsInTurn } from './pipelining.ts';
import { createClientErrorHandler, refuseUnknownExpectations, type RespondToFailure } from './raw-responses.ts';
import { requestIdOf } from './request-hooks.ts';

export interface InstanceOptions {
  logger: FastifyBaseLogger;
  /** Addresses and networks, separated by commas, whose `X-Forwarded-For` is believed. */
  trustedProxies: string;
  /** Of a body, in bytes. */
  bodyLimit: number;
  /** Of a parameter in the path, percent-encoded. */
  maxParamLength: number;
  respondToFailure: RespondToFailure;
  /** Responds to what Fastify rejects before it looks for a route. */
  frameworkErrors: NonNullable<FastifyServerOptions['frameworkErrors']>;
}

/** A Fastify instance whose limits withstand slow and greedy clients of the internet. */
export function createInstance(options: InstanceOptions): FastifyInstance {
  const app: FastifyInstance = fastify({
    loggerInstance: options.logger,
    // Requests are logged in request-hooks.ts; their id comes from the request context.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: (parent) => parent,
    ...(options.trustedProxies !== '' && { trustProxy: options.trustedProxies }),
    bodyLimit: options.bodyLimit,
    routerOptions: { maxParamLength: options.maxParamLength },
    requestTimeout: 10_000,
    // A client that has stopped reading the response.
    connectionTimeout: 30_000,
    keepAliveTimeout: 72_000,
    http: { headersTimeout: 5_000, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    // Requests that arrive on open connections during shutdown are still answered.
    return503OnClosing: false,
    genReqId: requestIdOf,
    rewriteUrl: ({ url = '/' }) => toOriginForm(url),
    clientErrorHandler: createClientErrorHandler(options.respondToFailure),
    frameworkErrors: options.frameworkErrors,
  });
  refuseUnknownExpectations(app.server, options.respondToFailure);
  handleConnectionsInTurn(app.server);
  return app;
}

/** A request to a proxy names the whole URL (RFC 9112 3.2.2); routes and links use the part after the authority. */
function toOriginForm(url: string): string {
  const rest = url.replace(/^https?:\/\/[^/?#]*/i, '');
  return rest === url || rest.startsWith('/') ? rest : `/${rest}`;
}
