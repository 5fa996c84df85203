import { collectDefaultMetrics, Registry } from 'prom-client';

export type Metrics = Registry;

/** A registry of one service's metrics, with those of the Node process. A registry each, so that several services fit in one test process. */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
