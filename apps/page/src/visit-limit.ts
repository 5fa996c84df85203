import { LRUCache } from 'lru-cache';

/** A visitor opens more pages than a person reads. */
export class TooManyVisits extends Error {
  override readonly name = 'TooManyVisits';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super('Too many pages.');
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** How often a network may do something. */
export interface Frequency {
  max: number;
  /** What persons rarely do, who have the address to themselves. Absent: only the maximum counts. */
  usual?: number;
  windowMs: number;
}

const maxNetworks = 10_000;
const minuteMs = 60_000;
export const limits = {
  /** Pages of links. */
  links: { max: 60, windowMs: minuteMs },
  /** Booking pages: the persons of an office or of a mobile network may have the same address. */
  bookingPages: { max: 600, usual: 60, windowMs: minuteMs },
  /** Times that are chosen on booking pages. */
  choices: { max: 100, usual: 10, windowMs: 10 * minuteMs },
  /** Forms of booking pages that are sent. */
  bookings: { max: 50, usual: 5, windowMs: 60 * minuteMs },
} satisfies Record<string, Frequency>;

/** How often each network has done something, in this process only. */
export interface VisitLimit {
  /** Counts a visit, and says if it is past the limit. */
  count(network: string): TooManyVisits | undefined;
  /** Whether a network has done it more often than usual. */
  isUnusual(network: string): boolean;
}

export function createVisitLimit(
  now: () => number,
  { max, usual = Number.POSITIVE_INFINITY, windowMs }: Frequency,
): VisitLimit {
  const networks = new LRUCache<string, { count: number; endsAtMs: number }>({ max: maxNetworks });
  const visitsOf = (network: string): { count: number; endsAtMs: number } => {
    const known = networks.get(network);
    return known === undefined || known.endsAtMs <= now() ? { count: 0, endsAtMs: now() + windowMs } : known;
  };
  return {
    count: (network) => {
      const visits = visitsOf(network);
      networks.set(network, visits);
      visits.count += 1;
      if (visits.count <= max) return undefined;
      return new TooManyVisits(Math.ceil((visits.endsAtMs - now()) / 1_000));
    },
    isUnusual: (network) => visitsOf(network).count > usual,
  };
}
