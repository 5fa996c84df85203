import { LRUCache } from 'lru-cache';

/** The remaining quota of a key after a request, for the `RateLimit` headers and for 429. */
export interface Allowance {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Whole seconds until the limit is reset. */
  resetSeconds: number;
}

export interface RateLimiter {
  /** Counts a request against the key's limit of requests per minute. */
  take(key: string, limit: number, nowMs: number): Allowance;
}

export const windowSeconds = 60;
const maxKeys = 10_000;

/**
 * Counts requests in windows of a minute that begin with a key's first request. Each gateway counts for itself: behind
 * a load balancer with n replicas a key may send up to n times its limit. That still protects each gateway, and no
 * request has to wait for a shared store.
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
