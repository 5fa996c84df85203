import { type Client, Metadata, type ServiceError, status as Status } from '@grpc/grpc-js';
import { type Answer, BatchServiceService, type CallAllResponse } from '@scheduling/contracts/rpc/v1';
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

/** Rejects with a ServiceError. */
export type SendCall = (call: OutgoingCall) => Promise<Buffer>;

interface Waiting extends OutgoingCall {
  resolve: (response: Buffer) => void;
  reject: (error: ServiceError) => void;
}

const { callAll } = BatchServiceService;
/** The most calls that are sent as one: with more of them, one process would wait while the next one works. */
const maxCalls = 16;
/** A server accepts 4 MiB. */
const maxBytes = 1_048_576;

/**
 * Sends the calls that are made in the same turn of the event loop as one, because most of what a gRPC call costs does not depend on what it does. No
 * call waits for others: one that comes alone is sent alone, in the same turn. Each has its own outcome and its own deadline.
 */
export function createCallSender(client: Client): SendCall {
  let waiting: Waiting[] = [];
  const sendWaiting = (): void => {
    const calls = waiting;
    waiting = [];
    for (const batch of inBatches(calls)) {
      if (batch.length === 1) sendAlone(client, batch[0]!);
      else sendTogether(client, batch);
    }
  };
  return (call) =>
    new Promise((resolve, reject) => {
      waiting.push({ ...call, resolve, reject });
      if (waiting.length === 1) setImmediate(sendWaiting);
    });
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

function sendTogether(client: Client, calls: Waiting[]): void {
  const nowMs = Date.now();
  const request = { calls: calls.map(({ path, request, metadata, deadlineMs }) => ({ path, request, metadata, timeoutMs: Math.max(0, deadlineMs - nowMs) })) };
  const options = { deadline: Math.max(...calls.map(({ deadlineMs }) => deadlineMs)) };
  const stream = client.makeServerStreamRequest(callAll.path, callAll.requestSerialize, callAll.responseDeserialize, request, new Metadata(), options);

  const open = new Set(calls);
  const timers = calls.map((call) => setTimeout(() => giveUp(call), call.deadlineMs - nowMs));
  const giveUp = (call: Waiting): void => {
    open.delete(call);
    call.reject(statusError(Status.DEADLINE_EXCEEDED));
    if (open.size === 0) stream.cancel();
  };
  const end = (error: ServiceError): void => {
    for (const timer of timers) clearTimeout(timer);
    for (const call of open) {
      // A server of a version without this method.
      if (error.code === Status.UNIMPLEMENTED) sendAlone(client, call);
      else call.reject(error);
    }
    open.clear();
  };
  stream.on('data', ({ answers }: CallAllResponse) => {
    for (const { index, outcome } of answers) {
      const call = calls[index]!;
      if (!open.delete(call)) continue;
      clearTimeout(timers[index]);
      settle(call, outcome);
    }
  });
  stream.on('error', end);
  stream.on('end', () => end(statusError(Status.UNAVAILABLE)));
}

function settle({ resolve, reject }: Waiting, outcome: Answer['outcome']): void {
  if (outcome?.$case === 'response') resolve(outcome.value);
  else reject(toServiceError(outcome?.value ?? { code: Status.INTERNAL, details: '' }));
}

function statusError(code: Status): ServiceError {
  return toServiceError({ code, details: Status[code] });
}

function unchanged(bytes: Buffer): Buffer {
  return bytes;
}
