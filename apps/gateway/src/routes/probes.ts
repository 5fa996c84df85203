import { DomainError } from '@scheduling/errors';
import type { FastifyInstance } from 'fastify';

/**
 * The probes on the public port, for load balancers that can reach only this one. Operators and Kubernetes use those of
 * the operations server.
 */
export function probeRoutes(isDraining: () => boolean) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/livez', { schema: { hide: true } }, async (_request, reply) =>
      reply.type('text/plain').header('cache-control', 'no-store').send('ok\n'),
    );

    app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
      if (isDraining()) throw new DomainError('service.unavailable', { text: 'the gateway is stopping' });
      return reply.type('text/plain').header('cache-control', 'no-store').send('ok\n');
    });
  };
}
