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
import { type ActiveSpan, type FairQueue, type Logger, type Metrics, newRequestId, type RequestContext, runWithContext, startSpan, type WaitOptions } from '@scheduling/runtime';
import { HealthImplementation } from 'grpc-health-check';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { RpcCredentials } from './credentials.ts';
import { type MethodDefinition, spanAttributes, spanName } from './definition.ts';
import { internalStatus, toStatus } from './errors.ts';
import type { HostedService } from './hosted-service.ts';
import { type Caller, requireCaller } from './require-caller.ts';
import { measureServedCalls } from './rpc-metrics.ts';
import { takeTurn } from './take-turn.ts';

export interface RpcServerOptions {
  host: string;
  port: number;
  services: HostedService[];
  /** Plain text by default. With mutual TLS, each method serves only its callers. */
  credentials?: RpcCredentials;
  logger: Logger;
  /** Maps errors of a library, such as a lost database connection, to domain errors; returns others unchanged. */
  translateError?: (error: unknown) => unknown;
  /** After this time clients reconnect, and so discover new replicas; 60 s by default. */
  maxConnectionAgeMs?: number;
  /** Where the calls are counted. */
  metrics?: Metrics;
  /** Shares the process between tenants: a call waits for a turn of the CRM that its request names. */
  turns?: FairQueue;
}

export interface RpcServer extends AsyncDisposable {
  port: number;
}

const drainTimeoutMs = 8_000;
/** A message of a stream contains many things: of one tenant's, one is made at a time. */
const messageWeight = 3;

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

function implementation({ definition, handlers, callers }: HostedService, options: RpcServerOptions): UntypedServiceImplementation {
  const wrapped: UntypedServiceImplementation = {};
  for (const [name, method] of Object.entries(definition)) {
    const handler = handlers[name]!;
    const authorize = options.credentials?.mutual ? permit(method, callers[name], options) : permitAll;
    wrapped[name] = method.responseStream ? streaming(method, handler, authorize, options) : unary(method, handler, authorize, options);
  }
  return wrapped;
}

/** Throws if the caller may not call the method. */
type Authorize = (call: { getAuthContext(): Caller }) => void;

/** A method without an entry serves nobody. */
function permit(method: MethodDefinition, callers: readonly string[] = [], { logger }: RpcServerOptions): Authorize {
  return (call) => requireCaller(call.getAuthContext(), method, callers, logger);
}

/** In plain text, callers have no names. */
function permitAll(): void {}

type AnyHandler = HostedService['handlers'][string];

function unary(method: MethodDefinition, handler: AnyHandler, authorize: Authorize, options: RpcServerOptions): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    const controller = new AbortController();
    call.once('cancelled', () => controller.abort());
    void serve(call, method, async (span) => {
      try {
        authorize(call);
        using _turn = await takeTurn(options.turns, call, { weight: 1, signal: controller.signal });
        callback(null, await handler(call.request as never, controller.signal));
      } catch (error) {
        callback(fail(span, error, method, options));
      }
    });
  };
}

function streaming(method: MethodDefinition, handler: AnyHandler, authorize: Authorize, options: RpcServerOptions): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    const controller = new AbortController();
    call.once('cancelled', () => controller.abort());
    void serve(call, method, async (span) => {
      try {
        authorize(call);
        await using messages = (handler(call.request as never, controller.signal) as AsyncIterable<unknown>)[Symbol.asyncIterator]() as AsyncGenerator;
        // Whoever has received a part of a list waits for the rest.
        for (let patient = false; ; patient = true) {
          const message = await nextMessage(messages, call, { patient, signal: controller.signal }, options);
          if (controller.signal.aborted) return;
          if (message.done === true) break;
          if (!call.write(message.value)) await once(call, 'drain', { signal: controller.signal });
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

/** Each message is made in a turn of its own; a slow reader has none. */
async function nextMessage(
  messages: AsyncGenerator,
  call: ServedCall,
  waiting: WaitOptions,
  { turns }: RpcServerOptions,
): Promise<IteratorResult<unknown>> {
  using _turn = await takeTurn(turns, call, { weight: messageWeight, ...waiting });
  return await messages.next();
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
    isServed: true,
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
