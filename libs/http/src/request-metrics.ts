import type { Metrics } from '@scheduling/runtime';
import { Histogram } from 'prom-client';

export interface RequestOutcome {
  method: string;
  /** The pattern, such as `/crms/:crmId/user/:reference`, or `unmatched`. */
  route: string;
  status: number;
  seconds: number;
}

export type RecordRequest = (outcome: RequestOutcome) => void;

const usualMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Returns a function that measures a request. No value that a client can make up becomes a label. */
export function createRequestMetrics(metrics: Metrics): RecordRequest {
  const durations = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from a request to the end of its response, by route pattern; the status is 499 if the client disconnected first',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5],
    registers: [metrics],
  });
  return ({ method, route, status, seconds }) => {
    durations.observe({ method: usualMethods.has(method) ? method : 'other', route, status }, seconds);
  };
}
