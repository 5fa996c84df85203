import { expect, it, vi } from 'vitest';
import { createMetrics } from './metrics.ts';

it('measures the delay of the event loop with few wake-ups, so that an idle process stays idle', async () => {
  const metrics = createMetrics('test');
  const shortestSeconds = await vi.waitFor(
    async () => {
      const all = await metrics.getMetricsAsJSON();
      const seconds = all.find(({ name }) => name === 'nodejs_eventloop_lag_min_seconds')!.values[0]!.value;
      // Without a sample it is the largest number.
      expect(seconds).toBeLessThan(60);
      return seconds;
    },
    { timeout: 10_000, interval: 500 },
  );
  expect(shortestSeconds).toBeGreaterThan(0.08);
});
