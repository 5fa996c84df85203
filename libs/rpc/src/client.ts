import {
  ChannelCredentials,
  type Client,
  connectivityState,
  makeGenericClientConstructor,
  type ServiceDefinition,
  type ServiceError,
  status as Status,
} from '@grpc/grpc-js';
import { DomainError } from '@scheduling/errors';
import { currentContext, currentTraceparent, inSpan, type Metrics, startSpan } from '@scheduling/runtime';
import { CallSender } from './call-streams.ts';
import { type Channel, createChannel } from './channel.ts';
import type { RpcCredentials } from './credentials.ts';
import {
  type Definition,
  type MethodDefinition,
  type RequestOf,
  type ResponseOf,
  spanAttributes,
  spanName,
} from './definition.ts';
import { fromServiceError } from './errors.ts';
import {
  actorHeader,
  idempotencyHeader,
  nestedHeader,
  operatorHeader,
  requestIdHeader,
  toMetadata,
  traceHeader,
} from './headers.ts';
import { type MeasureCall, measureMadeCalls } from './rpc-metrics.ts';

/** Every method of a service: a promise for a single response, an async iterable for a stream. */
export type ClientOf<D extends Definition> = {
  [Name in keyof D]: D[Name]['responseStream'] extends true ? StreamingCall<D[Name]> : UnaryCall<D[Name]>;
};

type UnaryCall<M extends MethodDefinition> = (request: RequestOf<M>) => Promise<ResponseOf<M>>;
type StreamingCall<M extends MethodDefinition> = (
  request: RequestOf<M>,
  signal?: AbortSignal,
) => AsyncIterable<ResponseOf<M>>;

export type RpcClient<D extends Definition> = ClientOf<D> & Disposable;

export interface ClientOptions {
  /** Plain text by default. */
  credentials?: RpcCredentials | undefined;
  /** Where the calls are counted. */
  metrics?: Metrics;
  /**
   * The time that a call has if it belongs to no request with a deadline, and that each message of a stream has, in
   * milliseconds; 2,000 by default.
   */
  timeoutMs?: number;
  /**
   * Called with each request before it is sent. If it throws, nothing is sent, and the call rejects with that error.
   */
  checkRequest?: (request: object) => void;
}

const defaultTimeoutMs = 2_000;
/**
 * How much of it a call may wait for a recently lost connection, in milliseconds: a service that restarts is available
 * again by then.
 */
const connectTimeoutMs = 1_000;
/** A service that has been unreachable for this long is down: calls to it fail immediately. */
const restartMs = 10_000;
/**
 * Connections that have been of no use for this long lead to addresses where nobody is any more, or another service.
 */
const stuckMs = 3_000;

/**
 * For methods with a stream of responses; see call-streams.ts for the others. A server that does not know a method is
 * another service, at an address that belonged to this one until a moment ago, or an older replica. Both have done
 * nothing, so the call is sent to the next one.
 */
const retryPolicy = {
  maxAttempts: 5,
  initialBackoff: '0.005s',
  maxBackoff: '0.04s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNIMPLEMENTED'],
};

const channelOptions = {
  // Its statistics about every call are read by nobody.
  'grpc.enable_channelz': 0,
  // Repeats calls that a server never accepted, such as those on a connection that is closing because of its age, and
  // those of the retry policy.
  'grpc.enable_retries': 1,
  // A list without a limit is returned in full; the default is 4 MiB.
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.max_reconnect_backoff_ms': 500,
  'grpc.initial_reconnect_backoff_ms': 100,
  // The name is resolved again when a connection ends. The default, at least 30 s between resolutions, leaves a client
  // without any address if all replicas were replaced within that time, or with one that by then belongs to another
  // service.
  'grpc.dns_min_time_between_resolutions_ms': 500,
};

/**
 * HTTP/2 sends the streams of one connection sequentially, by age (RFC 9218, not incremental): a long one would delay
 * every call after it. So each stream has a separate connection.
 */
const streamChannelOptions = { ...channelOptions, 'grpc.use_local_subchannel_pool': 1 };

/**
 * A client of one service. Every call has a deadline: that of the request that it belongs to, otherwise 2 s from now.
 * Methods that only read (`get…`, `list…`, `authenticate…`) are retried once if the service was unavailable. A stream
 * may take as long as its reader does, but each requested message must arrive within 2 s. Rejects with a DomainError;
 * if the service does not answer, with `service.unavailable`.
 *
 * @param service its name, which its certificate must contain under mutual TLS, whatever the address
 * @param address `host:port`, or `dns:///host:port` to spread calls over all replicas behind the name
 */
export function createClient<D extends Definition>(
  definition: D,
  service: string,
  address: string,
  options: ClientOptions = {},
): RpcClient<D> {
  const GenericClient = makeGenericClientConstructor(definition as unknown as ServiceDefinition, service);
  const credentials = options.credentials?.channel ?? ChannelCredentials.createInsecure();
  const clientOptions = { 'grpc.ssl_target_name_override': service, 'grpc.service_config': serviceConfig(definition) };
  const channel = createChannel(
    (options) => new GenericClient(address, credentials, { ...channelOptions, ...clientOptions, ...options }),
  );
  const openStreamClient = (): Client =>
    new GenericClient(address, credentials, { ...streamChannelOptions, ...clientOptions });
  const measure = measureMadeCalls(options.metrics);
  const sender = new CallSender(channel);
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const { checkRequest = () => undefined } = options;
  const connection: Connection = { channel, sender, measure, timeoutMs, checkRequest, seenMs: performance.now() };
  const methods: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition)) {
    methods[name] = method.responseStream
      ? streamingCall(openStreamClient, method, service, connection)
      : unaryCall(connection, name, method, service);
  }
  return Object.assign(methods as ClientOf<D>, {
    [Symbol.dispose]: () => {
      sender[Symbol.dispose]();
      channel[Symbol.dispose]();
    },
  });
}

function serviceConfig(definition: Definition): string {
  const services = new Set(Object.values(definition).map(({ path }) => path.split('/')[1]));
  const methodConfig = [{ name: [...services].map((service) => ({ service })), retryPolicy }];
  return JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }], methodConfig });
}

interface Connection {
  channel: Channel;
  sender: CallSender;
  measure: MeasureCall;
  timeoutMs: number;
  checkRequest: (request: object) => void;
  /**
   * When a call last found the connection ready, on the clock of `performance`; initially, when the client was created.
   */
  seenMs: number;
}

function unaryCall(
  connection: Connection,
  name: string,
  method: MethodDefinition,
  service: string,
): (request: never) => Promise<unknown> {
  const { channel, sender, measure, checkRequest } = connection;
  const idempotent = /^(get|list|authenticate)/.test(name);
  const attempt = async (request: Buffer): Promise<Buffer> => {
    const call = {
      path: method.path,
      request,
      metadata: requestMetadata(),
      deadlineMs: callDeadlineMs(connection.timeoutMs),
      onReplay: currentContext()?.onReplay,
    };
    const finish = measure(method);
    try {
      const response = await sender.send(call);
      finish(Status.OK);
      return response;
    } catch (error) {
      const { code } = error as ServiceError;
      finish(code);
      if (code === Status.UNIMPLEMENTED && performance.now() - channel.openedMs > stuckMs)
        channel.replace(channel.client);
      throw error;
    }
  };
  return (request) =>
    inSpan(spanName(method), { kind: 'CLIENT', attributes: () => spanAttributes(method) }, async () => {
      checkRequest(request);
      const bytes = method.requestSerialize(request);
      try {
        await waitForConnection(connection);
        const response = await attempt(bytes).catch((error: ServiceError) => {
          if (idempotent && error.code === Status.UNAVAILABLE) return attempt(bytes);
          throw error;
        });
        return method.responseDeserialize(response);
      } catch (error) {
        throw fromServiceError(error as ServiceError, service);
      }
    });
}

/**
 * A call on a channel that has just lost its server would fail immediately. If there is still no connection after the
 * wait, the call itself fails.
 */
async function waitForConnection(connection: Connection): Promise<void> {
  const { channel } = connection;
  const nowMs = performance.now();
  if (channel.client.getChannel().getConnectivityState(true) === connectivityState.READY) {
    connection.seenMs = nowMs;
    return;
  }
  if (nowMs - Math.max(connection.seenMs, channel.openedMs) > stuckMs) channel.replace(channel.client);
  if (nowMs - connection.seenMs > restartMs) return;
  const deadlineMs = Math.min(currentContext()?.deadlineMs ?? Number.POSITIVE_INFINITY, Date.now() + connectTimeoutMs);
  await new Promise<void>((resolve) => channel.client.waitForReady(deadlineMs, () => resolve()));
}

function streamingCall(
  openClient: () => Client,
  method: MethodDefinition,
  service: string,
  { measure, timeoutMs, checkRequest }: Connection,
) {
  return async function* call(request: never, signal?: AbortSignal): AsyncGenerator {
    checkRequest(request);
    const client = openClient();
    const span = startSpan(spanName(method), { kind: 'CLIENT', attributes: () => spanAttributes(method) });
    const finish = measure(method);
    const stream = client.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      toMetadata(span.run(requestMetadata)),
    );
    const cancel = (): void => stream.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    const messages = (stream as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const timer = setTimeout(cancel, timeoutMs);
        const next = await messages.next().finally(() => clearTimeout(timer));
        if (next.done === true) return finish(Status.OK);
        yield next.value;
      }
    } catch (error) {
      finish((error as ServiceError).code);
      const failure = fromServiceError(error as ServiceError, service);
      span.fail(failure);
      throw failure;
    } finally {
      finish(Status.CANCELLED);
      span.end();
      signal?.removeEventListener('abort', cancel);
      stream.cancel();
      client.close();
    }
  };
}

/** The headers with which another service continues this request. */
function requestMetadata(): Record<string, string> {
  const context = currentContext();
  const traceparent = currentTraceparent();
  return {
    ...(context && { [requestIdHeader]: context.requestId }),
    ...(context?.actor !== undefined && { [actorHeader]: context.actor }),
    ...(context?.isServed === true && { [nestedHeader]: 'true' }),
    ...(context?.isServed !== true && context?.operator !== undefined && { [operatorHeader]: context.operator }),
    ...(traceparent !== undefined && { [traceHeader]: traceparent }),
    ...(context?.idempotencyKey !== undefined && { [idempotencyHeader]: context.idempotencyKey }),
  };
}

function callDeadlineMs(timeoutMs: number): number {
  const deadlineMs = currentContext()?.deadlineMs ?? Date.now() + timeoutMs;
  if (deadlineMs <= Date.now())
    throw new DomainError('service.unavailable', { text: 'the time for this request is used up' });
  return deadlineMs;
}
