import { type Client, type ServiceError, status as Status } from '@grpc/grpc-js';
import { BatchServiceService, type MakeCallsRequest, type MakeCallsResponse } from '@scheduling/contracts/rpc/v1';
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
}

interface CallStream {
  /** Whether it takes further calls. */
  isOpen: boolean;
  send(calls: Waiting[]): void;
  /** It ends when its calls are answered. */
  close(): void;
}

const { makeCalls } = BatchServiceService;
/** How many streams are used in turn: each is served by another replica, as far as there are that many. */
const maxStreams = 4;
/** After this time a stream is replaced by another one, which may be served by a new replica. */
const maxStreamAgeMs = 10_000;
/** The most calls that are sent at once: with more of them, one process would wait while the next one works. */
const maxCalls = 16;
/** A server accepts 4 MiB. */
const maxBytes = 1_048_576;

/**
 * Makes calls on streams that stay open, because most of what a gRPC call costs does not depend on what it does. Those that are made in the same turn
 * of the event loop are sent at once. No call waits for others, and each has its own outcome and its own deadline.
 */
export function createCallSender(client: Client): CallSender {
  const streams: (CallStream | undefined)[] = Array.from({ length: maxStreams });
  let turn = 0;
  let waiting: Waiting[] = [];

  const nextStream = (): CallStream => {
    turn = (turn + 1) % maxStreams;
    const known = streams[turn];
    if (known?.isOpen === true) return known;
    return (streams[turn] = openStream(client));
  };
  const sendWaiting = (): void => {
    const calls = waiting;
    waiting = [];
    for (const batch of inBatches(calls)) {
      if (batch[0]!.request.length > maxBytes) sendAlone(client, batch[0]!);
      else nextStream().send(batch);
    }
  };
  return {
    send: (call) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...call, resolve, reject });
        if (waiting.length === 1) setImmediate(sendWaiting);
      }),
    [Symbol.dispose]: () => {
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

function sendAlone(client: Client, { path, request, metadata, deadlineMs, resolve, reject }: Waiting): void {
  client.makeUnaryRequest(path, unchanged, unchanged, request, toMetadata(metadata), { deadline: deadlineMs }, (error, response) => {
    if (error) reject(error);
    else resolve(response!);
  });
}

function openStream(client: Client): CallStream {
  const stream = client.makeBidiStreamRequest<MakeCallsRequest, MakeCallsResponse>(makeCalls.path, makeCalls.requestSerialize, makeCalls.responseDeserialize);
  const unanswered = new Map<number, { call: Waiting; timer: NodeJS.Timeout }>();
  let sent = 0;
  const close = (): void => {
    if (!self.isOpen) return;
    self.isOpen = false;
    clearTimeout(retirement);
    stream.end();
  };
  const take = (index: number): Waiting | undefined => {
    const found = unanswered.get(index);
    if (found === undefined) return undefined;
    unanswered.delete(index);
    clearTimeout(found.timer);
    return found.call;
  };
  /** The server may be stuck, and never end the stream. */
  const giveUp = (index: number): void => {
    take(index)?.reject(statusError(Status.DEADLINE_EXCEEDED));
    close();
    if (unanswered.size === 0) stream.cancel();
  };
  const end = (error: ServiceError): void => {
    close();
    for (const index of unanswered.keys()) fail(client, take(index)!, error);
  };
  const retirement = setTimeout(close, maxStreamAgeMs).unref();
  const self: CallStream = {
    isOpen: true,
    close,
    send: (calls) => {
      const nowMs = Date.now();
      for (const call of calls) {
        const index = sent++;
        unanswered.set(index, { call, timer: setTimeout(giveUp, call.deadlineMs - nowMs, index) });
      }
      stream.write({ calls: calls.map(({ path, request, metadata, deadlineMs }) => ({ path, request, metadata, timeoutMs: Math.max(0, deadlineMs - nowMs) })) });
    },
  };
  stream.on('data', ({ answers, isStopping }: MakeCallsResponse) => {
    if (isStopping) close();
    for (const { index, outcome } of answers) {
      const call = take(index);
      if (call === undefined) continue;
      if (outcome?.$case === 'response') call.resolve(outcome.value);
      else fail(client, call, toServiceError(outcome?.value ?? { code: Status.INTERNAL, details: '' }));
    }
  });
  stream.on('error', end);
  stream.on('end', () => end(statusError(Status.UNAVAILABLE)));
  return self;
}

/** A server of a version without this kind of stream, or that does not serve the method on one, may know the method itself. */
function fail(client: Client, call: Waiting, error: ServiceError): void {
  if (error.code === Status.UNIMPLEMENTED) sendAlone(client, call);
  else call.reject(error);
}

function statusError(code: Status): ServiceError {
  return toServiceError({ code, details: Status[code] });
}

function unchanged(bytes: Buffer): Buffer {
  return bytes;
}
