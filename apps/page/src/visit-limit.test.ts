import { expect, it } from 'vitest';
import { createVisitLimit, limits } from './visit-limit.ts';

it('refuses what a network opens beyond the limit until the minute is over, and says for how long', () => {
  let nowMs = 0;
  const { count: visit } = createVisitLimit(() => nowMs, limits.links);
  for (let count = 0; count < limits.links.max; count += 1) visit('one');
  nowMs = 45_500;
  expect(visit('one')).toMatchObject({ retryAfterSeconds: 15 });
  expect(visit('other')).toBeUndefined();
  nowMs = 59_999;
  expect(visit('one')).toMatchObject({ retryAfterSeconds: 1 });
  nowMs = 60_000;
  expect(visit('one')).toBeUndefined();
});

it('calls unusual what a network does more often than persons, until the time is over', () => {
  let nowMs = 0;
  const { count, isUnusual } = createVisitLimit(() => nowMs, limits.bookings);
  for (let sent = 0; sent < limits.bookings.usual; sent += 1) expect(count('one')).toBeUndefined();
  expect(isUnusual('one')).toBe(false);
  count('one');
  expect([isUnusual('one'), isUnusual('other')]).toEqual([true, false]);
  nowMs = limits.bookings.windowMs;
  expect(isUnusual('one')).toBe(false);
});
