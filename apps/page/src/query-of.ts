import type { FastifyRequest } from 'fastify';

/** The query of an address, also of one that Fastify has not parsed, because it found no route. */
export function queryOf({ url }: Pick<FastifyRequest, 'url'>): URLSearchParams {
  const [, ...query] = url.split('?');
  return new URLSearchParams(query.join('?'));
}

/** The date of a week in the address; undefined for what is no date. */
export function dateOf(query: URLSearchParams): string | undefined {
  const date = query.get('date');
  if (date === null || !/^\d{4}-\d\d-\d\d$/.test(date)) return undefined;
  try {
    return Temporal.PlainDate.from(date).toString();
  } catch {
    return undefined;
  }
}
