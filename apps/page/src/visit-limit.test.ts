import { expect, it } from 'vitest';
import { createVisitLimit, visitsPerMinute } from './visit-limit.ts';

it('refuses what a network opens beyond the limit until the minute is over, and says for how long', () => {
  let nowMs = 0;
  const visit = createVisitLimit(() => nowMs);
  for (let count = 0; count < visitsPerMinute; count += 1) visit('one');
  nowMs = 45_500;
  expect(visit('one')).toMatchObject({ retryAfterSeconds: 15 });
  expect(visit('other')).toBeUndefined();
  nowMs = 59_999;
  expect(visit('one')).toMatchObject({ retryAfterSeconds: 1 });
  nowMs = 60_000;
  expect(visit('one')).toBeUndefined();
});
