import { type ActiveSpan, currentContext, newRequestId, runWithContext, startSpan } from '@scheduling/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { MalformedRequest } from './errors.ts';
import type { RecordRequest } from './request-metrics.ts';

/** The status that nginx logs for a client that disconnected before it got a response. */
const clientClosedRequest = 499;
/** How long a request may take once it has arrived completely, in milliseconds. */
const requestBudgetMs = 2_000;
/** A body of this size is read even if the request is rejected before, so that the connection can be used again. */
const discardedBytes = 65_536;

/** The client's own request id if it is valid, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given) ? given : newRequestId();
}

const arrivals = new WeakMap<FastifyRequest, number>();

/** From now on the request takes time: its body has arrived. */
export function noteArrival(request: FastifyRequest): void {
  arrivals.set(request, Date.now());
}

const signals = new WeakMap<FastifyRequest, AbortSignal>();
const connectionClosed = new MalformedRequest('The connection was closed.');

/** Aborts when the client is gone, or has received the response: nobody waits for the request any more. */
export function closedSignal(request: FastifyRequest): AbortSignal {
  return signals.get(request)!;
}

/** The work has as much time as a request that has just arrived. */
export function withNewDeadline<T>(work: () => T): T {
  return runWithContext({ ...currentContext()!, deadlineMs: Date.now() + requestBudgetMs }, work);
}

/**
 * What happens around every request, whatever its route.
 *
 * @param isDraining whether the service is about to stop
 */
export function addRequestHooks(app: FastifyInstance, record: RecordRequest, isDraining: () => boolean): void {
  const spans = new WeakMap<FastifyRequest, ActiveSpan>();
  const proceed = (request: FastifyRequest, done: () => void): void => {
    runWithContext(
      { requestId: request.id, actor: 'person', deadlineMs: (arrivals.get(request) ?? Date.now()) + requestBudgetMs },
      () => spans.get(request)?.run(done),
    );
  };

  app.addHook('onRequest', (request, reply, done) => {
    const span = startRequestSpan(request);
    spans.set(request, span);
    const closed = new AbortController();
    signals.set(request, closed.signal);
    reply.raw.once('close', () => {
      closed.abort(connectionClosed);
      const status = statusOf(reply);
      span.run(() => recordOutcome(request, reply, status, record));
      span.set({ 'http.response.status_code': status });
      if (status >= 500) span.fail(status);
      span.end();
    });
    void reply.headers({ 'x-request-id': request.id, 'x-content-type-options': 'nosniff' });
    // RFC 9112 3.2. Node would refuse it without a body.
    if (request.raw.httpVersion !== '1.0' && request.headers.host === undefined) {
      return done(new MalformedRequest('The Host header is missing.'));
    }
    if (!isDecodable(request.url)) return done(new MalformedRequest('The URL is not percent-encoded in UTF-8.'));
    proceed(request, done);
  });

  app.addHook('onSend', (request, reply, payload, done) => {
    // The rest of a large body would be read only to be discarded.
    const isUnread = !request.raw.complete && announcedBytes(request) > discardedBytes;
    if (isUnread || isDraining()) void reply.header('connection', 'close');
    if (request.method !== 'HEAD' || reply.statusCode !== 204) return done(null, payload);
    // Fastify would send the length and the type of the `null` that a GET is answered with.
    void reply.removeHeader('content-type');
    return done(null, Readable.from([]));
  });

  // A body arrives in events of the connection, which do not know the request's context; the time it takes to arrive
  // does not count.
  app.addHook('preValidation', (request, _reply, done) => proceed(request, done));
}

/**
 * Whether a URL means one text only. What is not UTF-8 in a query is otherwise taken literally, and so is a `%` that
 * begins no escape. What follows a `#` is no part of an address (RFC 9112 3.2): a reference whose `#` is not encoded
 * would be another one.
 */
function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url);
    return !url.includes('#');
  } catch {
    return false;
  }
}

/** The length of the body; any length if it is sent in chunks. */
export function announcedBytes({ headers }: FastifyRequest): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY;
}

/** A client that traces its own calls finds our spans in the same trace (W3C Trace Context). */
function startRequestSpan(request: FastifyRequest): ActiveSpan {
  const { traceparent } = request.headers;
  const route = routeOf(request);
  const attributes = () => ({ 'http.request.method': request.method, 'http.route': route });
  return startSpan(`${request.method} ${route}`, {
    kind: 'SERVER',
    attributes,
    parent: typeof traceparent === 'string' ? traceparent : undefined,
  });
}

/** The pattern, never the address: references and messages in an address may be personal data. */
function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unmatched';
}

function statusOf(reply: FastifyReply): number {
  return reply.raw.headersSent ? reply.statusCode : clientClosedRequest;
}

/** One log line and one measurement per request, even if the client disconnected or the response was cut off. */
function recordOutcome(request: FastifyRequest, reply: FastifyReply, status: number, record: RecordRequest): void {
  const { method, id: requestId, params } = request;
  const route = routeOf(request);
  const { crmId } = (params ?? {}) as { crmId?: string };
  const complete = reply.raw.writableFinished;
  request.log.info(
    { requestId, method, route, status, ms: Math.round(reply.elapsedTime), crmId, ...(!complete && { complete }) },
    'request',
  );
  record({ method, route, status, seconds: reply.elapsedTime / 1_000 });
}
