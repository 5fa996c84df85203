import { expect, it } from 'vitest';
import { measureAtScrape, type Sample } from './measure-at-scrape.ts';
import { createMetrics } from './metrics.ts';
import { startOperationsServer } from './operations-server.ts';

/** Generous: a scrape is limited to 1.5 s, or else never ends. */
const answerMs = 10_000;

it('a gauge has the value measured for this scrape', async () => {
  const metrics = createMetrics('test');
  let value = 0;
  measureAtScrape(metrics, { depth: { help: 'of a queue', labelNames: ['queue'] } }, async () => ({
    depth: [{ labels: { queue: 'mail' }, value: (value += 1) }],
  }));
  expect(await metrics.metrics()).toContain('depth{queue="mail",service="test"} 1');
  expect(await metrics.metrics()).toContain('depth{queue="mail",service="test"} 2');
});

it(
  'a gauge that cannot be measured is missing from the response, which is still sent',
  { timeout: answerMs },
  async () => {
    const metrics = createMetrics('test');
    const answers: (() => Promise<Record<'depth', Sample[]>>)[] = [
      () => Promise.resolve({ depth: [{ value: 1 }] }),
      () => Promise.reject(new Error('away')),
      // A hanging server.
      () => new Promise(() => undefined),
    ];
    measureAtScrape(metrics, { depth: { help: 'of a queue' } }, () => answers.shift()!());
    await using operations = await startOperationsServer({ host: '127.0.0.1', port: 0, metrics, readiness: {} });
    const scrape = async (): Promise<{ status: number; text: string }> => {
      const response = await fetch(`http://127.0.0.1:${operations.port}/metrics`);
      return { status: response.status, text: await response.text() };
    };
    expect((await scrape()).text).toContain('\ndepth{service="test"} 1');
    for (let round = 0; round < 2; round += 1) {
      const { status, text } = await scrape();
      expect(status).toBe(200);
      expect(text).not.toContain('\ndepth{');
      expect(text).toContain('process_start_time_seconds');
    }
  },
);

it('concurrent scrapes, and one after a scrape that still hangs, share one measurement', async () => {
  const metrics = createMetrics('test');
  const answer = Promise.withResolvers<Record<'depth' | 'age', Sample[]>>();
  let measured = 0;
  measureAtScrape(metrics, { depth: { help: 'of a queue' }, age: { help: 'of its oldest' } }, () => {
    measured += 1;
    return answer.promise;
  });
  expect(await metrics.metrics()).not.toContain('\ndepth{');
  const scrapes = [metrics.metrics(), metrics.metrics()];
  answer.resolve({ depth: [{ value: 3 }], age: [{ value: 4 }] });
  for (const text of await Promise.all(scrapes))
    expect(text).toMatch(/\ndepth\{service="test"\} 3[^]*\nage\{service="test"\} 4/);
  expect(measured).toBe(1);
});
