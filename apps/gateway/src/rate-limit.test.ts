import { expect, it } from 'vitest';
import { createRateLimiter } from './rate-limit.ts';

it('counts each key separately, in windows of a minute that begin with its first request', () => {
  const limiter = createRateLimiter();
  expect(limiter.take('a', 2, 1_000)).toEqual({ allowed: true, limit: 2, remaining: 1, resetSeconds: 60 });
  expect(limiter.take('a', 2, 31_500)).toEqual({ allowed: true, limit: 2, remaining: 0, resetSeconds: 30 });
  expect(limiter.take('a', 2, 60_999)).toEqual({ allowed: false, limit: 2, remaining: 0, resetSeconds: 1 });
  expect(limiter.take('b', 2, 60_999)).toMatchObject({ allowed: true });
  expect(limiter.take('a', 2, 61_000)).toMatchObject({ allowed: true, remaining: 1 });
});

it('follows a change of the limit within a window', () => {
  const limiter = createRateLimiter();
  limiter.take('a', 5, 0);
  limiter.take('a', 5, 0);
  expect(limiter.take('a', 1, 0)).toMatchObject({ allowed: false, remaining: 0 });
  expect(limiter.take('a', 5, 0)).toMatchObject({ allowed: true, remaining: 2 });
});
