import { currentContext, runWithContext } from '@scheduling/runtime';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';

/** The header by which a client makes the repetition of a POST safe (interface 1): an optional parameter of each of them. */
export const idempotencyHeaders = Type.Object({
  // In lower case, as Node names headers: with a validator of our own, Fastify leaves the schema as it is.
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[\\x21-\\x7e]{1,255}$',
      description: 'A string chosen by the client, unique to each request; a UUID is a good choice. Repeating a request with its key within 72 hours has no further effect.',
    }),
  ),
});

/** Sends the key of a request along with the calls of its handler. It has been validated by now. */
export function passOnIdempotencyKeys(scope: FastifyInstance): void {
  scope.addHook('preHandler', (request, _reply, done) => {
    const key = request.headers['idempotency-key'];
    if (request.method !== 'POST' || typeof key !== 'string') return done();
    runWithContext({ ...currentContext()!, idempotencyKey: key }, done);
  });
}
