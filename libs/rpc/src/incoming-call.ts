import type { ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { type Caller, callerOf } from './require-caller.ts';

/** A call of a method, whether it came alone or together with others. */
export interface IncomingCall {
  request: unknown;
  header(name: string): string | undefined;
  /** In epoch milliseconds; infinite if it has none. */
  deadlineMs: number;
  caller: Caller;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** A call that came alone. */
export function incomingCall(
  call: ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>,
): IncomingCall {
  return {
    request: call.request,
    header: (name) => call.metadata.get(name)[0]?.toString(),
    deadlineMs: Number(call.getDeadline()),
    caller: callerOf(call),
    signal: cancellation(call),
  };
}

/** Aborts when the caller has disconnected or its deadline has passed, and at the end. */
function cancellation(call: { once(event: 'cancelled', listener: () => void): unknown }): AbortSignal {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  return controller.signal;
}
