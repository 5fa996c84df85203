import { type Client, type ServiceError, status as Status } from '@grpc/grpc-js';
import { BatchServiceService, type MakeCallsRequest, type MakeCallsResponse } from '@scheduling/contracts/rpc/v1';
import type { Channel } from './channel.ts';
import { toServiceError } from './errors.ts';
import { toMetadata } from './headers.ts';

/** A unary call, ready to be sent. */
export interface OutgoingCall {
  path: string;
  request: Buffer;
  metadata: Record<string, string>;
  /** In epoch milliseconds. */
  deadlineMs: number;
}

/** Disposal lets the streams end when their calls are answered. */
export interface CallSender extends Disposable {
  /** Rejects with a ServiceError. */
  send(call: OutgoingCall): Promise<Buffer>;
}

interface Waiting extends OutgoingCall {
  resolve: (response: Buffer) => void;
  reject: (error: ServiceError) => void;
  /** A stream for it has ended before the server accepted it. */
  isSecondAttempt?: boolean;
}

/** A call on a stream, until it is answered. */
interface Pending {
  call: Waiting;
  sinceMs: number;
  timer: NodeJS.Timeout;
}

interface CallStream {
  /** Whether it takes further calls. */
  isOpen: boolean;
  client: Client;
  send(calls: Waiting[]): void;
  /** It ends when its calls are answered. */
  close(): void;
}

const { makeCalls } = BatchServiceService;
/** How many streams are used in turn: each is served by another replica, as far as there are that many. */
const maxStreams = 4;
/** After this time a stream is replaced by another one, which may be served by a new replica. */
const maxStreamAgeMs = 10_000;
/** How long calls are held back for a server that does not say that it has accepted the stream, because it is of a previous version. */
const maxHeldMs = 100;
/** A call that is not answered in time is a reason for new connections if nothing has come on its stream for this long. */
const silentMs = 500;
/** The most calls that are sent at once: with more of them, one process would wait while the next one works. */
const maxCalls = 16;
/** A server accepts 4 MiB. */
const maxBytes = 1_048_576;

/**
 * Makes calls on streams that stay open, because most of what a gRPC call costs does not depend on what it does. Those that are made in the same turn
 * of the event loop are sent at once. No call waits for others, and each has its own outcome and its own deadline.
 *
 * A call is not sent before the server has accepted its stream. A server that closes a connection, because of its age or because it stops, answers all that
 * it has accepted, but nobody knows what became of a stream that reached it at that moment.
 */
export function createCallSender(channel: Channel): CallSender {
  const streams: (CallStream | undefined)[] = Array.from({ length: maxStreams });
  let turn = 0;
  let waiting: Waiting[] = [];
  let isClosed = false;

  const nextStream = (): CallStream => {
    turn = (turn + 1) % maxStreams;
    const known = streams[turn];
    if (known?.isOpen === true && known.client === channel.client) return known;
    known?.close();
    return (streams[turn] = openStream(channel, sendElsewhere));
  };
  const enqueue = (call: Waiting): void => {
    waiting.push(call);
    if (waiting.length === 1) setImmediate(sendWaiting);
  };
  const sendElsewhere = (call: Waiting, error: ServiceError): void => {
    if (call.isSecondAttempt === true) call.reject(error);
    else enqueue(Object.assign(call, { isSecondAttempt: true }));
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

function inBatches(calls: Waiting[]): Waiting[][] {
  const batches: Waiting[][] = [];
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

function sendAlone({ client }: Channel, { path, request, metadata, deadlineMs, resolve, reject }: Waiting): void {
  client.makeUnaryRequest(path, unchanged, unchanged, request, toMetadata(metadata), { deadline: deadlineMs }, (error, response) => {
    if (error) reject(error);
    else resolve(response!);
  });
}

/** @param sendElsewhere what happens to a call that the server cannot have received, because it has not accepted the stream */
function openStream(channel: Channel, sendElsewhere: (call: Waiting, error: ServiceError) => void): CallStream {
  const { client } = channel;
  const stream = client.makeBidiStreamRequest<MakeCallsRequest, MakeCallsResponse>(makeCalls.path, makeCalls.requestSerialize, makeCalls.responseDeserialize);
  /** What waits until the server has accepted the stream; undefined from then on. */
  let held: Pending[][] | undefined = [];
  const pending = new Set<Pending>();
  const unanswered = new Map<number, Pending>();
  let sent = 0;
  let lastMessageMs = 0;
  const close = (): void => {
    if (!self.isOpen) return;
    self.isOpen = false;
    clearTimeout(retirement);
    if (held === undefined || held.length === 0) stream.end();
  };
  const take = (each: Pending): Waiting => {
    pending.delete(each);
    clearTimeout(each.timer);
    return each.call;
  };
  /** The server may be stuck, and never end the stream, or the connection may be dead. */
  const giveUp = (each: Pending): void => {
    if (Date.now() - Math.max(each.sinceMs, lastMessageMs) >= silentMs) channel.replace(client);
    take(each).reject(statusError(Status.DEADLINE_EXCEEDED));
    close();
    if (pending.size === 0) stream.cancel();
  };
  const write = (batch: Pending[]): void => {
    if (batch.length === 0) return;
    const nowMs = Date.now();
    for (const each of batch) unanswered.set(sent++, each);
    stream.write({ calls: batch.map(({ call: { path, request, metadata, deadlineMs } }) => ({ path, request, metadata, timeoutMs: Math.max(0, deadlineMs - nowMs) })) });
  };
  const accept = (): void => {
    const batches = held ?? [];
    held = undefined;
    for (const batch of batches) write(batch.filter((each) => pending.has(each)));
    if (!self.isOpen && batches.length > 0) stream.end();
  };
  const end = (error: ServiceError): void => {
    close();
    clearTimeout(patience);
    for (const each of pending) {
      if (error.code === Status.UNIMPLEMENTED || held === undefined) fail(channel, take(each), error);
      else sendElsewhere(take(each), error);
    }
  };
  const retirement = setTimeout(close, maxStreamAgeMs).unref();
  const patience = setTimeout(accept, maxHeldMs).unref();
  const self: CallStream = {
    isOpen: true,
    client,
    close,
    send: (calls) => {
      const nowMs = Date.now();
      const batch = calls.map((call) => {
        const each: Pending = { call, sinceMs: nowMs, timer: setTimeout(() => giveUp(each), call.deadlineMs - nowMs) };
        pending.add(each);
        return each;
      });
      if (held === undefined) write(batch);
      else held.push(batch);
    },
  };
  stream.on('metadata', accept);
  stream.on('data', ({ answers, isStopping }: MakeCallsResponse) => {
    lastMessageMs = Date.now();
    if (isStopping) close();
    for (const { index, outcome } of answers) {
      const each = unanswered.get(index);
      unanswered.delete(index);
      if (each === undefined || !pending.has(each)) continue;
      const call = take(each);
      if (outcome?.$case === 'response') call.resolve(outcome.value);
      else fail(channel, call, toServiceError(outcome?.value ?? { code: Status.INTERNAL, details: '' }));
    }
  });
  stream.on('error', (error: ServiceError) => end(lost(error)));
  stream.on('end', () => end(statusError(Status.UNAVAILABLE)));
  return self;
}

/** What the end of a stream means for its calls, whatever gRPC says: nobody knows what became of them. */
function lost({ code, details }: ServiceError): ServiceError {
  return toServiceError({ code: code === Status.UNIMPLEMENTED ? code : Status.UNAVAILABLE, details });
}

/** A server of a version without this kind of stream, or that does not serve the method on one, may know the method itself. */
function fail(channel: Channel, call: Waiting, error: ServiceError): void {
  if (error.code === Status.UNIMPLEMENTED) sendAlone(channel, call);
  else call.reject(error);
}

function statusError(code: Status): ServiceError {
  return toServiceError({ code, details: Status[code] });
}

function unchanged(bytes: Buffer): Buffer {
  return bytes;
}
