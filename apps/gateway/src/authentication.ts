import { DomainError } from '@scheduling/errors';
import { delayRejection, slowDown, type Strangers, withNewDeadline } from '@scheduling/http';
import { currentContext, describeSpan, runWithContext } from '@scheduling/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Credentials, KeyRing } from './key-ring.ts';
import { requireScope } from './key-scopes.ts';
import { RequestError } from './problem.ts';
import { type RateLimiter, windowSeconds } from './rate-limit.ts';

/** Failures of an address in a minute, as after a mistake in a client's configuration, that have no consequences. */
export const freeFailures = 300;

/**
 * Admits only the owner of a CRM's key to the routes of this scope, which begin with `/crms/:crmId`, and only to those
 * that the scope of the key includes (interface 5). It runs before the body is read, so that an unauthorised caller
 * learns nothing, not even what a valid request looks like.
 */
export function requireKey(
  scope: FastifyInstance,
  keyRing: KeyRing,
  rateLimiter: RateLimiter,
  strangers: Strangers,
): void {
  scope.addHook('onRequest', async (request, reply) => {
    const credentials = await authenticate(request, keyRing, strangers);
    const { keyHash, scope: keyScope, crm } = credentials;
    if (crm.requestsPerMinute !== undefined)
      await limitRate(request, reply, rateLimiter, keyHash, crm.requestsPerMinute);
    const { crmId } = request.params as { crmId: string };
    // The response is the same whether or not that CRM exists.
    if (crmId !== crm.crmId) throw new DomainError('crm.forbidden');
    describeSpan({ 'scheduling.crm': crmId });
    requireScope(keyScope, request.routeOptions.config.keyScope);
    authenticated.set(request, credentials);
  });
  scope.addHook('preHandler', (request, _reply, done) => {
    const { crm, keyPrefix } = credentialsOf(request);
    runWithContext({ ...currentContext()!, crmId: crm.crmId, actor: `crm:${keyPrefix}` }, done);
  });
}

const authenticated = new WeakMap<FastifyRequest, Credentials>();

/** The key of a request that {@link requireKey} has admitted. */
export function credentialsOf(request: FastifyRequest): Credentials {
  return authenticated.get(request)!;
}

async function authenticate(request: FastifyRequest, keyRing: KeyRing, strangers: Strangers): Promise<Credentials> {
  const header = request.headers['x-service-client-id'];
  const key = typeof header === 'string' ? header : undefined;
  // Known keys never wait; others from the same address do, because it may be that of a proxy.
  if (!keyRing.hasKnown(key)) await slowDown(strangers, request);
  try {
    return await withNewDeadline(() => keyRing.authenticate(key));
  } catch (error) {
    if (error instanceof DomainError && error.category === 'unauthenticated') strangers.noteFailure(request.ip);
    throw error;
  }
}

/** Sets the headers of draft-ietf-httpapi-ratelimit-headers. Rejects with `rate.limited`, after a while. */
async function limitRate(
  request: FastifyRequest,
  reply: FastifyReply,
  rateLimiter: RateLimiter,
  keyHash: string,
  limit: number,
): Promise<void> {
  const { allowed, remaining, resetSeconds } = rateLimiter.take(keyHash, limit, Date.now());
  void reply.headers({
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds}`,
    ratelimit: `"key";r=${remaining};t=${resetSeconds}`,
  });
  if (allowed) return;
  await delayRejection(request);
  throw new RequestError('rate.limited', {
    detail: `This key is limited to ${limit} requests per minute.`,
    headers: { 'retry-after': String(resetSeconds) },
  });
}
