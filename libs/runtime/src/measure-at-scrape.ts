import { Gauge } from 'prom-client';
import type { Metrics } from './metrics.ts';
import { within } from './within.ts';

export interface GaugeDescription {
  help: string;
  /** A value of bounded number: never a tenant, a person or an id. */
  labelNames?: string[];
}

/** One value of a gauge. */
export interface Sample {
  labels?: Record<string, string>;
  value: number;
}

const measurementTimeoutMs = 1_500;

/**
 * Gauges whose values are asked for, all of them at once, whenever somebody scrapes: a database, a broker. When it does not answer in time they are
 * missing from the answer, which is true, rather than zero or old, which is not. Scrapes at the same time share one measurement, and one that hangs
 * is not asked a second time, so a server that is away costs one connection at most.
 */
export function measureAtScrape<Name extends string>(
  metrics: Metrics,
  gauges: Record<Name, GaugeDescription>,
  measure: () => Promise<Record<Name, Sample[]>>,
): void {
  let running: Promise<Record<Name, Sample[]>> | undefined;
  const measureOnce = (): Promise<Record<Name, Sample[]>> =>
    (running ??= measure().finally(() => {
      running = undefined;
    }));
  for (const [name, description] of Object.entries(gauges) as [Name, GaugeDescription][]) {
    const gauge = new Gauge({
      name,
      ...description,
      registers: [metrics],
      collect: async () => {
        const measured = await within(measureOnce(), measurementTimeoutMs).catch(() => undefined);
        gauge.reset();
        // Without labels the reset has left a zero behind.
        gauge.remove({});
        for (const { labels = {}, value } of measured?.[name] ?? []) gauge.set(labels, value);
      },
    });
  }
}
