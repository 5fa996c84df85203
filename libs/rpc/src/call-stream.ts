import {
  type Client,
  type ClientDuplexStream,
  type Metadata,
  type ServiceError,
  status as Status,
} from '@grpc/grpc-js';
import { BatchServiceService, type MakeCallsRequest, type MakeCallsResponse } from '@scheduling/contracts/rpc/v1';
import type { Channel } from './channel.ts';
import { toServiceError } from './errors.ts';
import { clockHeader } from './headers.ts';
import { sendAlone, type WaitingCall } from './send-alone.ts';

interface Pending {
  call: WaitingCall;
  sinceMs: number;
  timer: NodeJS.Timeout;
}

const { makeCalls } = BatchServiceService;
/** After this time a stream takes no further calls: another one may be served by a new replica. */
const maxAgeMs = 10_000;
/**
 * A call that is not answered in time is a reason for new connections if nothing has come on its stream for this long.
 */
const silentMs = 500;

/**
 * A stream on which calls are made, any number at the same time. It takes calls until it is a while old, one is not
 * answered in time, or the server stops, and ends when those are answered.
 *
 * A call is not sent before the server has accepted the stream. A server that closes a connection, because of its age
 * or because it stops, answers all that it has accepted, but nobody knows what became of a stream that reached it at
 * that moment.
 *
 * With its acceptance, and with each message, the server says what time it is. So every call has a deadline by the
 * clock of the server, which rejects a call that reaches it later, because the network has kept it, or because the
 * server stood still. It may have been repeated since then.
 */
export class CallStream {
  /** With which it was opened. */
  readonly client: Client;
  readonly #channel: Channel;
  readonly #sendElsewhere: (call: WaitingCall, error: ServiceError) => void;
  readonly #stream: ClientDuplexStream<MakeCallsRequest, MakeCallsResponse>;
  /** What waits until the server has accepted the stream; undefined from then on. */
  #held: Pending[][] | undefined = [];
  /** All calls that are not answered. */
  readonly #pending = new Set<Pending>();
  /** Those of them that are sent, by their number. */
  readonly #sent = new Map<number, Pending>();
  #sentCount = 0;
  #lastMessageMs = 0;
  /**
   * By how much the clock of the server is ahead of that of `performance`, at least: what it says takes a while to
   * arrive. Undefined if it says nothing.
   */
  #serverAheadMs: number | undefined;
  #isOpen = true;
  readonly #retirement: NodeJS.Timeout;

  /**
   * @param sendElsewhere what happens to a call that the server cannot have received, because it has not accepted the
   *   stream
   */
  constructor(channel: Channel, sendElsewhere: (call: WaitingCall, error: ServiceError) => void) {
    this.client = channel.client;
    this.#channel = channel;
    this.#sendElsewhere = sendElsewhere;
    this.#stream = this.client.makeBidiStreamRequest(
      makeCalls.path,
      makeCalls.requestSerialize,
      makeCalls.responseDeserialize,
    );
    this.#retirement = setTimeout(() => this.close(), maxAgeMs).unref();
    this.#stream.on('metadata', (metadata: Metadata) => this.#accept(metadata));
    this.#stream.on('data', (response: MakeCallsResponse) => this.#receive(response));
    this.#stream.on('error', (error: ServiceError) => this.#end(lost(error)));
    this.#stream.on('end', () => this.#end(statusError(Status.UNAVAILABLE)));
  }

  /** Whether it takes further calls. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(calls: WaitingCall[]): void {
    const [nowMs, sinceMs] = [Date.now(), performance.now()];
    const batch = calls.map((call) => {
      const each: Pending = { call, sinceMs, timer: setTimeout(() => this.#giveUp(each), call.deadlineMs - nowMs) };
      this.#pending.add(each);
      return each;
    });
    if (this.#held === undefined) this.#write(batch);
    else this.#held.push(batch);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#retirement);
    if (this.#held === undefined || this.#held.length === 0) this.#stream.end();
  }

  #accept(metadata: Metadata): void {
    const [now] = metadata.get(clockHeader);
    if (now !== undefined) this.#readClock(Number(now));
    const batches = this.#held ?? [];
    this.#held = undefined;
    for (const batch of batches) this.#write(batch.filter((each) => this.#pending.has(each)));
    if (!this.#isOpen && batches.length > 0) this.#stream.end();
  }

  #write(batch: Pending[]): void {
    if (batch.length === 0) return;
    const nowMs = Date.now();
    for (const each of batch) this.#sent.set(this.#sentCount++, each);
    const calls = batch.map(({ call: { path, request, metadata, deadlineMs } }) => {
      const timeoutMs = Math.max(0, deadlineMs - nowMs);
      return { path, request, metadata, timeoutMs, deadlineMs: this.#onServerClock(timeoutMs) };
    });
    this.#stream.write({ calls });
  }

  /** The quickest message tells the time best. None makes a deadline come too late. */
  #readClock(nowMs: number): void {
    this.#serverAheadMs = Math.max(this.#serverAheadMs ?? Number.NEGATIVE_INFINITY, nowMs - performance.now());
  }

  #onServerClock(remainingMs: number): number | undefined {
    return this.#serverAheadMs === undefined ? undefined : this.#serverAheadMs + performance.now() + remainingMs;
  }

  #receive({ answers, isStopping, nowMs }: MakeCallsResponse): void {
    this.#lastMessageMs = performance.now();
    if (nowMs !== undefined) this.#readClock(nowMs);
    if (isStopping) this.close();
    for (const { index, outcome, isReplay } of answers) {
      const each = this.#sent.get(index);
      this.#sent.delete(index);
      if (each === undefined || !this.#pending.has(each)) continue;
      const call = this.#take(each);
      if (isReplay) call.onReplay?.();
      if (outcome?.$case === 'response') call.resolve(outcome.value);
      else fail(this.#channel, call, toServiceError(outcome?.value ?? { code: Status.INTERNAL, details: '' }));
    }
  }

  /** The server may be stuck, and never end the stream, or the connection may be dead. */
  #giveUp(each: Pending): void {
    if (performance.now() - Math.max(each.sinceMs, this.#lastMessageMs) >= silentMs) this.#channel.replace(this.client);
    this.#take(each).reject(statusError(Status.DEADLINE_EXCEEDED));
    this.close();
    if (this.#pending.size === 0) this.#stream.cancel();
  }

  #end(error: ServiceError): void {
    this.close();
    const wasAccepted = this.#held === undefined;
    for (const each of this.#pending) {
      if (wasAccepted || error.code === Status.UNIMPLEMENTED) fail(this.#channel, this.#take(each), error);
      else this.#sendElsewhere(this.#take(each), error);
    }
  }

  #take(each: Pending): WaitingCall {
    this.#pending.delete(each);
    clearTimeout(each.timer);
    return each.call;
  }
}

export function statusError(code: Status): ServiceError {
  return toServiceError({ code, details: Status[code] });
}

/** What the end of a stream means for its calls, whatever gRPC says: nobody knows what became of them. */
function lost({ code, details }: ServiceError): ServiceError {
  return toServiceError({ code: code === Status.UNIMPLEMENTED ? code : Status.UNAVAILABLE, details });
}

/**
 * A server of a version without this kind of stream, or that does not serve the method on one, may know the method
 * itself.
 */
function fail(channel: Channel, call: WaitingCall, error: ServiceError): void {
  if (error.code === Status.UNIMPLEMENTED) sendAlone(channel, call);
  else call.reject(error);
}
