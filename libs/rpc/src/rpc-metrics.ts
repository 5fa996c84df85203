import { status as Status } from '@grpc/grpc-js';
import type { Metrics } from '@scheduling/runtime';
import { Histogram } from 'prom-client';
import type { MethodDefinition } from './definition.ts';

/**
 * Starts measuring a call. The returned function counts it the first time: a call that has its status may still be
 * cancelled.
 */
export type MeasureCall = (method: MethodDefinition) => (status: Status) => void;

const labelNames = ['rpc_service', 'rpc_method', 'rpc_status'] as const;
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** Measures every call served, a stream until its end. */
export function measureServedCalls(metrics: Metrics | undefined): MeasureCall {
  const help =
    'Time from the arrival of a gRPC call to its status; CANCELLED if the caller disconnected or its deadline expired';
  return measureCalls(metrics, { name: 'rpc_server_duration_seconds', help });
}

/** Measures every attempt to call another service, as the caller sees it, including attempts without an answer. */
export function measureMadeCalls(metrics: Metrics | undefined): MeasureCall {
  const help = 'Time from a gRPC call to another service to its status; each attempt is measured separately';
  return measureCalls(metrics, { name: 'rpc_client_duration_seconds', help });
}

/** All servers of a process share one histogram, and so do all its clients. */
function measureCalls(metrics: Metrics | undefined, { name, help }: { name: string; help: string }): MeasureCall {
  if (metrics === undefined) return () => () => undefined;
  const known = metrics.getSingleMetric(name) as Histogram<(typeof labelNames)[number]> | undefined;
  const durations = known ?? new Histogram({ name, help, labelNames, buckets, registers: [metrics] });
  return ({ path }) => {
    const startedMs = performance.now();
    const [, service = '', method = ''] = path.split('/');
    let finished = false;
    return (status) => {
      if (finished) return;
      finished = true;
      durations.observe(
        { rpc_service: service, rpc_method: method, rpc_status: Status[status] },
        (performance.now() - startedMs) / 1_000,
      );
    };
  };
}
