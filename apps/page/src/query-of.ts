import type { FastifyRequest } from 'fastify';

/** The query of an address, also of one that Fastify has not parsed, because it found no route. */
export function queryOf({ url }: Pick<FastifyRequest, 'url'>): URLSearchParams {
  const [, ...query] = url.split('?');
  return new URLSearchParams(query.join('?'));
}
