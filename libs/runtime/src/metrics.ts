import { collectDefaultMetrics, Registry } from 'prom-client';

export type Metrics = Registry;

/** The default of 10 ms wakes an idle process 100 times a second, more often than everything else combined. */
const eventLoopSampleMs = 100;

/**
 * A registry of one service's metrics, including those of the Node process. Not shared, so that several services can
 * run in one test process.
 */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  return registry;
}
