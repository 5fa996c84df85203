import {
  type handleServerStreamingCall,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { BatchServiceService } from '@scheduling/contracts/rpc/v1';
import type { WaitOptions } from '@scheduling/runtime';
import { HealthImplementation } from 'grpc-health-check';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { RpcCredentials } from './credentials.ts';
import type { HostedService } from './hosted-service.ts';
import { callerOf } from './require-caller.ts';
import {
  requireReady,
  type IncomingCall,
  serve,
  type ServedMethod,
  servedMethods,
  type ServingOptions,
} from './serve-call.ts';
import { createCallStreams } from './serve-call-streams.ts';
import { messageWeight, takeTurn } from './take-turn.ts';

export interface RpcServerOptions extends ServingOptions {
  /** A name or an address; `::` listens on all addresses of this machine, also those of IPv4. */
  host: string;
  port: number;
  services: HostedService[];
  /** Plain text by default. With mutual TLS, each method serves only its callers. */
  credentials?: RpcCredentials;
  /** After this time clients reconnect, and so discover new replicas; 60 s by default. */
  maxConnectionAgeMs?: number;
}

export interface RpcServer extends AsyncDisposable {
  port: number;
}

const drainTimeoutMs = 8_000;

/**
 * Serves gRPC with the health service; unary methods on streams of calls only (serve-call-streams.ts). Disposal reports
 * NOT_SERVING, finishes calls in progress, and ends within 8 s.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const server = new Server({
    // Old connections accept no new calls. Calls in progress are finished, however long a stream is being read.
    'grpc.max_connection_age_ms': options.maxConnectionAgeMs ?? 60_000,
    // There is no keepalive (see channel.ts). So what a dead client leaves behind ends when TCP gives up, after about a
    // quarter of an hour. Its statistics about every call are read by nobody.
    'grpc.enable_channelz': 0,
  });
  const isMutual = options.credentials?.mutual === true;
  const unaryMethods = new Map<string, ServedMethod>();
  for (const service of options.services) {
    const methods = servedMethods(service, { isMutual }, options);
    const handlers: UntypedServiceImplementation = {};
    for (const [name, served] of methods) {
      if (served.method.responseStream) handlers[name] = streaming(served);
      else unaryMethods.set(served.method.path, served);
    }
    server.addService(service.definition as unknown as ServiceDefinition, handlers);
  }
  const callStreams = createCallStreams(unaryMethods);
  server.addService(BatchServiceService, { makeCalls: callStreams.serve });
  const health = new HealthImplementation({ '': 'SERVING' });
  health.addToServer(server);

  const credentials = options.credentials?.server ?? ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    const host = isIPv6(options.host) ? `[${options.host}]` : options.host;
    server.bindAsync(`${host}:${options.port}`, credentials, (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      health.setStatus('', 'NOT_SERVING');
      callStreams.stop();
      const drained = new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
      });
      await Promise.race([drained, delay(drainTimeoutMs, undefined, { ref: false })]);
      server.forceShutdown();
    },
  };
}

function streaming(served: ServedMethod): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    const incoming = incomingCall(call);
    void serve(served, incoming, () => writeMessages(served, incoming, call)).then((status) => {
      if (status !== undefined) call.emit('error', status);
    });
  };
}

function incomingCall(call: ServerWritableStream<unknown, unknown>): IncomingCall {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  return {
    request: call.request,
    header: (name) => call.metadata.get(name)[0]?.toString(),
    deadlineMs: Number(call.getDeadline()),
    caller: callerOf(call),
    signal: controller.signal,
  };
}

async function writeMessages(
  served: ServedMethod,
  incoming: IncomingCall,
  call: ServerWritableStream<unknown, unknown>,
): Promise<void> {
  const { signal, request } = incoming;
  try {
    await using messages = (served.handler(request as never, signal) as AsyncIterable<unknown>)[
      Symbol.asyncIterator
    ]() as AsyncGenerator;
    // Whoever has received a part of a list waits for the rest.
    for (let patient = false; ; patient = true) {
      const message = await nextMessage(messages, served, incoming, { patient, signal });
      if (signal.aborted) return;
      if (message.done === true) break;
      if (!call.write(message.value)) await once(call, 'drain', { signal });
    }
    call.end();
  } catch (error) {
    // Otherwise the caller is gone: either waiting for the reader or the handler was aborted because of that.
    if (!signal.aborted) throw error;
  }
}

/** Each message is made in a turn of its own; a slow reader has none. */
async function nextMessage(
  messages: AsyncGenerator,
  served: ServedMethod,
  incoming: IncomingCall,
  waiting: WaitOptions,
): Promise<IteratorResult<unknown>> {
  const { options, turnOf } = served;
  using _turn = await takeTurn(options.turns, incoming, { weight: messageWeight, turnOf, ...waiting });
  await requireReady(served, incoming);
  return await messages.next();
}
