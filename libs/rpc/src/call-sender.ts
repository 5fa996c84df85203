import { type ServiceError, status as Status } from '@grpc/grpc-js';
import { CallStream, statusError } from './call-stream.ts';
import type { Channel } from './channel.ts';
import { type OutgoingCall, sendAlone, type WaitingCall } from './send-alone.ts';

/** Disposal lets the streams end when their calls are answered. */
export interface CallSender extends Disposable {
  /** Rejects with a ServiceError. */
  send(call: OutgoingCall): Promise<Buffer>;
}

/** How many streams are used in turn: each is served by another replica, as far as there are that many. */
const maxStreams = 4;
/** The most calls that are sent at once: with more of them, one process would wait while the next one works. */
const maxCalls = 16;
/** A server accepts 4 MiB. */
const maxBytes = 1_048_576;

/**
 * Makes calls on streams that stay open, because most of what a gRPC call costs does not depend on what it does. Those
 * that are made in the same turn of the event loop are sent at once. No call waits for others, and each has its own
 * outcome and its own deadline.
 */
export function createCallSender(channel: Channel): CallSender {
  const streams: (CallStream | undefined)[] = Array.from({ length: maxStreams });
  /** Those that have been sent elsewhere once. */
  const second = new WeakSet<WaitingCall>();
  let turn = 0;
  let waiting: WaitingCall[] = [];
  let isClosed = false;

  const enqueue = (call: WaitingCall): void => {
    waiting.push(call);
    if (waiting.length === 1) setImmediate(sendWaiting);
  };
  const sendElsewhere = (call: WaitingCall, error: ServiceError): void => {
    if (second.has(call)) return call.reject(error);
    second.add(call);
    enqueue(call);
  };
  const nextStream = (): CallStream => {
    turn = (turn + 1) % maxStreams;
    const known = streams[turn];
    if (known?.isOpen === true && known.client === channel.client) return known;
    known?.close();
    return (streams[turn] = new CallStream(channel, sendElsewhere));
  };
  const sendWaiting = (): void => {
    const calls = waiting;
    waiting = [];
    if (isClosed) return calls.forEach(({ reject }) => reject(statusError(Status.UNAVAILABLE)));
    for (const batch of inBatches(calls)) {
      if (batch[0]!.request.length > maxBytes) sendAlone(channel, batch[0]!);
      else nextStream().send(batch);
    }
  };
  return {
    send: (call) =>
      new Promise((resolve, reject) => {
        enqueue({ ...call, resolve, reject });
      }),
    [Symbol.dispose]: () => {
      isClosed = true;
      for (const stream of streams) stream?.close();
    },
  };
}

function inBatches(calls: WaitingCall[]): WaitingCall[][] {
  const batches: WaitingCall[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const call of calls) {
    const last = batches.at(-1);
    if (last !== undefined && last.length < maxCalls && bytes + call.request.length <= maxBytes) last.push(call);
    else {
      batches.push([call]);
      bytes = 0;
    }
    bytes += call.request.length;
  }
  return batches;
}
