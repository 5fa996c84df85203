import { Gauge } from 'prom-client';
import type { Metrics } from './metrics.ts';
import { within } from './within.ts';

export interface GaugeDescription {
  help: string;
  /** Labels with few values: never a tenant, a person or an id. */
  labelNames?: string[];
}

/** One value of a gauge. */
export interface Sample {
  labels?: Record<string, string>;
  value: number;
}

const measurementTimeoutMs = 1_500;

/**
 * Gauges that are measured together on every scrape, for example in a database or a broker. If the measurement does not
 * finish in time, they are missing from the response, which is correct, instead of zero or stale. Concurrent scrapes
 * share one measurement, and a hanging one is not repeated, so an unavailable server ties up at most one connection.
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
        // Without labels the reset leaves a zero behind.
        gauge.remove({});
        for (const { labels = {}, value } of measured?.[name] ?? []) gauge.set(labels, value);
      },
    });
  }
}
