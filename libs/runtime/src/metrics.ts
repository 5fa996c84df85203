import { collectDefaultMetrics, Registry } from 'prom-client';

export type Metrics = Registry;

/** The default of 10 ms wakes an idle process 100 times a second, more often than everything else together. */
const eventLoopSampleMs = 100;

/** A registry of one service's metrics, with those of the Node process. A registry each, so that several services fit in one test process. */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  return registry;
}
