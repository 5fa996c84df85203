import { currentContext, runWithContext } from '@scheduling/runtime';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';

/** The header that makes repeating a POST safe (interface 1): an optional parameter of every POST. */
export const idempotencyHeaders = Type.Object({
  // In lower case, as Node names headers: with a custom validator, Fastify leaves the schema as it is.
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[\\x21-\\x7e]{1,255}$',
      description:
        'A string chosen by the client, unique to each request; a UUID is a good choice. Repeating a request with its key within 72 hours has no further effect.',
    }),
  ),
});

/**
 * Forwards a request's key with the calls of its handler, and marks a response that only repeats an earlier one. The
 * key has already been validated.
 */
export function passOnIdempotencyKeys(scope: FastifyInstance): void {
  scope.addHook('preHandler', (request, reply, done) => {
    const key = request.headers['idempotency-key'];
    if (request.method !== 'POST' || typeof key !== 'string') return done();
    const onReplay = (): void => void reply.header('idempotency-replayed', 'true');
    runWithContext({ ...currentContext()!, idempotencyKey: key, onReplay }, done);
  });
}
