import { LRUCache } from 'lru-cache';

/** What is left to a key after a request, for the `RateLimit` headers and for 429. */
export interface Allowance {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Whole seconds until the limit is full again. */
  resetSeconds: number;
}

export interface RateLimiter {
  /** Counts a request of a key against its limit of requests a minute. */
  take(key: string, limit: number, nowMs: number): Allowance;
}

export const windowSeconds = 60;
const maxKeys = 10_000;

/**
 * Counts requests in windows of a minute that begin with a key's first request. The count is this gateway's own: behind a balancer with
 * n replicas a key may send up to n times its limit, which protects each gateway, and needs no shared store in the way of every request.
 */
export function createRateLimiter(): RateLimiter {
  const windows = new LRUCache<string, { endsAtMs: number; count: number }>({ max: maxKeys });
  return {
    take: (key, limit, nowMs) => {
      let window = windows.get(key);
      if (window === undefined || nowMs >= window.endsAtMs) {
        window = { endsAtMs: nowMs + windowSeconds * 1_000, count: 0 };
        windows.set(key, window);
      }
      const allowed = window.count < limit;
      if (allowed) window.count += 1;
      return {
        allowed,
        limit,
        remaining: Math.max(0, limit - window.count),
        resetSeconds: Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1_000)),
      };
    },
  };
}
