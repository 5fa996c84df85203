import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status as Status,
  type StatusObject,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { DomainError } from '@scheduling/errors';
import { type ActiveSpan, type Logger, type Metrics, newRequestId, type RequestContext, runWithContext, startSpan } from '@scheduling/runtime';
import { HealthImplementation } from 'grpc-health-check';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { RpcCredentials } from './credentials.ts';
import { type Definition, type MethodDefinition, type RequestOf, type ResponseOf, spanAttributes, spanName } from './definition.ts';
import { internalStatus, toStatus } from './errors.ts';
import { measureServedCalls } from './rpc-metrics.ts';

/** The implementation of each method of a service. A handler rejects with a DomainError for errors that the caller may see. */
export type Handlers<D extends Definition> = {
  [Name in keyof D]: D[Name]['responseStream'] extends true ? StreamingHandler<D[Name]> : UnaryHandler<D[Name]>;
};

type UnaryHandler<M extends MethodDefinition> = (request: RequestOf<M>) => Promise<ResponseOf<M>>;
/** `signal` aborts when the caller disconnects or its deadline passes. */
type StreamingHandler<M extends MethodDefinition> = (request: RequestOf<M>, signal: AbortSignal) => AsyncIterable<ResponseOf<M>>;

/** A service definition with its handlers, type-checked against each other. */
export interface HostedService {
  definition: Definition;
  handlers: Record<string, (request: never, signal: AbortSignal) => unknown>;
}

export function hostService<D extends Definition>(definition: D, handlers: Handlers<D>): HostedService {
  return { definition, handlers };
}

export interface RpcServerOptions {
  host: string;
  port: number;
  services: HostedService[];
  /** Plain text by default. */
  credentials?: RpcCredentials;
  logger: Logger;
  /** Maps errors of a library, such as a lost database connection, to domain errors; returns others unchanged. */
  translateError?: (error: unknown) => unknown;
  /** After this time clients reconnect, and so discover new replicas; 60 s by default. */
  maxConnectionAgeMs?: number;
  /** Where the calls are counted. */
  metrics?: Metrics;
}

export interface RpcServer extends AsyncDisposable {
  port: number;
}

const drainTimeoutMs = 8_000;

/** Serves gRPC with the health service. Disposal reports NOT_SERVING, finishes calls in progress, and ends within 8 s. */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const server = new Server({
    // Old connections accept no new calls. Calls in progress are finished, however long a stream is being read.
    'grpc.max_connection_age_ms': options.maxConnectionAgeMs ?? 60_000,
    'grpc.keepalive_time_ms': 20_000,
    'grpc.keepalive_timeout_ms': 5_000,
    interceptors: options.metrics ? [measureServedCalls(options.metrics)] : [],
  });
  for (const service of options.services) {
    server.addService(service.definition as unknown as ServiceDefinition, implementation(service, options));
  }
  const health = new HealthImplementation({ '': 'SERVING' });
  health.addToServer(server);

  const credentials = options.credentials?.server ?? ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${options.host}:${options.port}`, credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      health.setStatus('', 'NOT_SERVING');
      const drained = new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
      });
      await Promise.race([drained, delay(drainTimeoutMs, undefined, { ref: false })]);
      server.forceShutdown();
    },
  };
}

function implementation({ definition, handlers }: HostedService, options: RpcServerOptions): UntypedServiceImplementation {
  const wrapped: UntypedServiceImplementation = {};
  for (const [name, method] of Object.entries(definition)) {
    const handler = handlers[name]!;
    wrapped[name] = method.responseStream ? streaming(method, handler, options) : unary(method, handler, options);
  }
  return wrapped;
}

type AnyHandler = HostedService['handlers'][string];

function unary(method: MethodDefinition, handler: AnyHandler, options: RpcServerOptions): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    const controller = new AbortController();
    call.once('cancelled', () => controller.abort());
    void serve(call, method, async (span) => {
      try {
        callback(null, await handler(call.request as never, controller.signal));
      } catch (error) {
        callback(fail(span, error, method, options));
      }
    });
  };
}

function streaming(method: MethodDefinition, handler: AnyHandler, options: RpcServerOptions): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    const controller = new AbortController();
    call.once('cancelled', () => controller.abort());
    void serve(call, method, async (span) => {
      try {
        for await (const message of handler(call.request as never, controller.signal) as AsyncIterable<unknown>) {
          if (controller.signal.aborted) return;
          if (!call.write(message)) await once(call, 'drain', { signal: controller.signal });
        }
        call.end();
      } catch (error) {
        // The caller is gone: either waiting for the reader or the handler was aborted because of that.
        if (controller.signal.aborted) return;
        call.emit('error', fail(span, error, method, options));
      }
    });
  };
}

/** Runs a handler within its caller's request context and trace. */
function serve(call: ServedCall, method: MethodDefinition, work: (span: ActiveSpan) => Promise<void>): Promise<void> {
  const parent = call.metadata.get('traceparent')[0]?.toString();
  const attributes = { ...spanAttributes(method), 'rpc.grpc.status_code': Status.OK };
  const span = startSpan(spanName(method), { kind: 'SERVER', attributes, parent });
  return runWithContext(contextOf(call, method), () => span.run(() => work(span))).finally(() => span.end());
}

function fail(span: ActiveSpan, error: unknown, method: MethodDefinition, options: RpcServerOptions): StatusObject {
  const status = statusFor(error, method, options);
  span.fail(error);
  span.set({ 'rpc.grpc.status_code': status.code });
  return status;
}

function contextOf(call: ServedCall, method: MethodDefinition): RequestContext {
  const requestId = call.metadata.get('x-request-id')[0]?.toString() ?? newRequestId();
  const deadlineMs = Number(call.getDeadline());
  const key = call.metadata.get('idempotency-key')[0]?.toString();
  return {
    requestId,
    ...(Number.isFinite(deadlineMs) && { deadlineMs }),
    ...(key !== undefined && { idempotency: { key, fingerprint: fingerprintOf(call.request, method) } }),
  };
}

interface ServedCall {
  metadata: Metadata;
  request: unknown;
  getDeadline(): Date | number;
}

/**
 * The fields are in the order of the definition, so the same content has the same bytes. How the answer is wanted (`in_parts`) is not content: a
 * repetition may come from a caller of another version.
 */
function fingerprintOf(request: unknown, { path, requestSerialize }: MethodDefinition): Buffer {
  const content = { ...(request as object), inParts: undefined };
  return createHash('sha256').update(path).update('\0').update(requestSerialize(content as never)).digest();
}

function statusFor(error: unknown, method: MethodDefinition, { logger, translateError }: RpcServerOptions): StatusObject {
  const translated = translateError ? translateError(error) : error;
  if (translated instanceof DomainError) {
    if (translated.category === 'unavailable') logger.warn({ err: translated, method: method.path }, 'unavailable');
    return toStatus(translated);
  }
  logger.error({ err: error, method: method.path }, 'unexpected error');
  return internalStatus();
}
