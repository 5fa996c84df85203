import { describe, expect, it } from 'vitest';
import { decideAfterFailure } from './decide-after-failure.ts';
import { defaultTimings } from './timings.ts';

const { retriesMs } = defaultTimings;
const failed = { status: 500, durationMs: 1 };
const day = 24 * 60 * 60 * 1_000;
const middle = 0.5;

describe('an event that could not be delivered', () => {
  it('is sent ten times: at once, and after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h', () => {
    const seconds = retriesMs.map((_, failedAttempts) => {
      const decision = decideAfterFailure(failed, failedAttempts, retriesMs, middle);
      return decision.outcome === 'retry' && decision.afterMs / 1_000;
    });
    expect(seconds).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    expect(decideAfterFailure(failed, retriesMs.length, retriesMs)).toEqual({ outcome: 'disable', reason: '500' });
  });

  it('is sent up to a tenth sooner or later than that', () => {
    const after = (random: number) => decideAfterFailure({ error: 'timeout', durationMs: 1 }, 0, retriesMs, random);
    expect([after(0), after(1)]).toEqual([
      { outcome: 'retry', afterMs: 4_500, reason: 'timeout' },
      { outcome: 'retry', afterMs: 5_500, reason: 'timeout' },
    ]);
  });

  it('waits longer if the endpoint asks for it, but not more than a day', () => {
    const after = (retryAfterSeconds: number) =>
      decideAfterFailure({ ...failed, retryAfterSeconds }, 1, retriesMs, middle);
    expect(
      [after(10), after(3_600), after(1e9)].map((decision) => decision.outcome === 'retry' && decision.afterMs),
    ).toEqual([300_000, 3_600_000, day]);
  });

  it('is not sent again if the endpoint is gone', () => {
    expect(decideAfterFailure({ status: 410, durationMs: 1 }, 0, retriesMs)).toEqual({
      outcome: 'disable',
      reason: '410',
    });
  });
});
