import { type RawBuilder, sql } from 'kysely';

/** To one user, and to one mailbox, in 24 hours: enough to receive one, too few to flood a mailbox. */
const maxMailsPerDay = 5;

/** How long a request counts. */
export const countedFor = '24 hours';

/** Those of the times of requests that count. */
export function recentOf(requests: RawBuilder<unknown>): RawBuilder<Date[]> {
  return sql<
    Date[]
  >`ARRAY(SELECT request FROM unnest(${requests}) AS request WHERE request > now() - ${countedFor}::interval)`;
}

/** Until another mail may follow these: at most one a minute. Not positive: now. */
export function waitSeconds(requests: RawBuilder<unknown>): RawBuilder<number> {
  return sql<number>`(
    SELECT coalesce(ceil(extract(epoch FROM greatest(
             max(request) + interval '1 minute',
             CASE WHEN count(*) >= ${maxMailsPerDay} THEN min(request) + ${countedFor}::interval END) - now()))::integer, 0)
      FROM unnest(${recentOf(requests)}) AS request)`;
}
