import { LRUCache } from 'lru-cache';

/** A visitor opens more pages than a person reads. */
export class TooManyVisits extends Error {
  override readonly name = 'TooManyVisits';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super('Too many pages in a minute.');
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const windowMs = 60_000;
const maxNetworks = 10_000;
/** Pages of a network in a minute. */
export const visitsPerMinute = 60;

/** Returns a function that counts a visit of a network, and says if it is past the limit. In this process only. */
export function createVisitLimit(now: () => number): (network: string) => TooManyVisits | undefined {
  const networks = new LRUCache<string, { count: number; endsAtMs: number }>({ max: maxNetworks });
  return (network) => {
    const known = networks.get(network);
    const visits = known === undefined || known.endsAtMs <= now() ? { count: 0, endsAtMs: now() + windowMs } : known;
    networks.set(network, visits);
    visits.count += 1;
    if (visits.count <= visitsPerMinute) return undefined;
    return new TooManyVisits(Math.ceil((visits.endsAtMs - now()) / 1_000));
  };
}
