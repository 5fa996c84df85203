import {
  InterceptingCall,
  type Interceptor,
  ListenerBuilder,
  RequesterBuilder,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  status as Status,
} from '@grpc/grpc-js';
import type { Metrics } from '@scheduling/runtime';
import { Histogram } from 'prom-client';

type Durations = Histogram<'rpc_service' | 'rpc_method' | 'rpc_status'>;

const labelNames = ['rpc_service', 'rpc_method', 'rpc_status'] as const;
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** Measures every call served, a stream until its end. Those of the server itself, such as the health check, count too. */
export function measureServedCalls(metrics: Metrics): ServerInterceptor {
  const help = 'Time from the arrival of a gRPC call to its status; CANCELLED if the caller disconnected or its deadline expired';
  const durations = openDurations(metrics, { name: 'rpc_server_duration_seconds', help });
  return ({ path }, nextCall) => {
    const finish = startCall(durations, path);
    const listener = new ServerListenerBuilder().withOnCancel(() => finish(Status.CANCELLED)).build();
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendStatus((status, next) => {
        finish(status.code);
        next(status);
      })
      .build();
    return new ServerInterceptingCall(nextCall, responder);
  };
}

/** Measures every attempt to call another service, as the caller sees it, including attempts without an answer. */
export function measureMadeCalls(metrics: Metrics): Interceptor {
  const help = 'Time from a gRPC call to another service to its status; each attempt is measured separately';
  const durations = openDurations(metrics, { name: 'rpc_client_duration_seconds', help });
  return (options, nextCall) => {
    const finish = startCall(durations, options.method_definition.path);
    const requester = new RequesterBuilder()
      .withStart((metadata, _listener, next) => {
        const listener = new ListenerBuilder()
          .withOnReceiveStatus((status, nextStatus) => {
            finish(status.code);
            nextStatus(status);
          })
          .build();
        next(metadata, listener);
      })
      .build();
    return new InterceptingCall(nextCall(options), requester);
  };
}

/** All servers of a process share one histogram, and so do all its clients. */
function openDurations(metrics: Metrics, { name, help }: { name: string; help: string }): Durations {
  return (metrics.getSingleMetric(name) as Durations | undefined) ?? new Histogram({ name, help, labelNames, buckets, registers: [metrics] });
}

/** The returned function counts the call only the first time: a call that already has its status may still be cancelled. */
function startCall(durations: Durations, path: string): (status: Status) => void {
  const startedMs = performance.now();
  const [, service = '', method = ''] = path.split('/');
  let finished = false;
  return (status) => {
    if (finished) return;
    finished = true;
    durations.observe({ rpc_service: service, rpc_method: method, rpc_status: Status[status] }, (performance.now() - startedMs) / 1_000);
  };
}
