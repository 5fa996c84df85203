import { type Client, type ClientDuplexStream, type ServiceError, status as Status } from '@grpc/grpc-js';
import {
  type Answer,
  BatchServiceService,
  type MakeCallsRequest,
  type MakeCallsResponse,
} from '@scheduling/contracts/rpc/v1';
import type { Channel } from './channel.ts';
import { toServiceError } from './errors.ts';

/** A unary call. */
export interface OutgoingCall {
  path: string;
  request: Buffer;
  metadata: Record<string, string>;
  /** In epoch milliseconds. */
  deadlineMs: number;
  /** Called before the response if that repeats an earlier one. */
  onReplay?: (() => void) | undefined;
}

interface WaitingCall extends OutgoingCall {
  resolve: (response: Buffer) => void;
  reject: (error: ServiceError) => void;
  timer: NodeJS.Timeout;
  /** Since when, and until when, somebody waits for it, on the clock of `performance`. */
  sinceMs: number;
  untilMs: number;
  /** How often it could not be made. */
  failures: number;
  /** On which it was sent. */
  stream?: CallStream | undefined;
}

/** How many streams are used in turn: each is served by another replica, as far as there are that many. */
const maxStreams = 4;
/** The most calls in a message: with more of them, one process would wait while the next one works. */
const maxCalls = 16;
/** The most that they have together; a larger call has a message of its own. */
const maxBytes = 1_048_576;
/** What a server accepts, less what surrounds the call. */
const maxCallBytes = 4 * 1_048_576 - 16_384;
/**
 * How often a call is tried of which no server has done anything, and when again: each time with another stream, and
 * when other addresses may be connected.
 */
const maxTries = 4;
const retryMs = 20;
/** A call that is not answered in time is a reason for new connections if the server has said nothing for this long. */
const silentMs = 500;

const { makeCalls } = BatchServiceService;

/**
 * Makes unary calls on streams that stay open, because most of what a gRPC call costs does not depend on what it does.
 * Those that are made in the same turn of the event loop are one message. No call waits for others, and each has its
 * own outcome and its own deadline. A stream:
 *
 *               accepted by             asked to close by the server,
 *               the server              or a call not answered in time              all calls answered
 *     opening ──────────────▶  open  ────────────────────────────────▶  closing  ───────────────────────▶  ended
 *        │                      │                                          │                                ▲
 *        └──────────────────────┴────── error: the calls on it fail ───────┴────────────────────────────────┘
 *
 * - opening: No call is sent. A server that closes a connection answers all that it has accepted, but nobody knows what
 *   became of a stream that reached it at that moment. Calls wait for any stream that is open.
 * - open: Calls are sent. With each message, the server says what time it is, so that each call has a deadline on the
 *   clock of the server. It rejects a call that reaches it later, because the network has kept it, or because the
 *   server stood still: the call may have been repeated since then.
 * - closing: No further call is sent. The server asks for it when it stops, and when the stream is old: the next one may
 *   be served by a new replica.
 */
export class CallSender implements Disposable {
  readonly #channel: Channel;
  readonly #streams = new Set<CallStream>();
  /** What is not sent. */
  readonly #waiting = new Set<WaitingCall>();
  #isScheduled = false;
  #turn = 0;
  #isDisposed = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Rejects with a ServiceError. */
  send(call: OutgoingCall): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#isDisposed) return reject(statusError(Status.UNAVAILABLE));
      if (call.request.length > maxCallBytes) return reject(statusError(Status.RESOURCE_EXHAUSTED));
      const [sinceMs, remainingMs] = [performance.now(), call.deadlineMs - Date.now()];
      const timer = setTimeout(() => this.#giveUp(each), remainingMs);
      const each = { ...call, resolve, reject, timer, sinceMs, untilMs: sinceMs + remainingMs, failures: 0 };
      this.#waiting.add(each);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#proceed();
      });
    });
  }

  #proceed(): void {
    for (const stream of this.#streams) {
      if (stream.client !== this.#channel.client) stream.close();
      if (stream.state === 'closing') this.#streams.delete(stream);
    }
    if (this.#waiting.size > 0 && this.#streams.size < maxStreams) this.#streams.add(this.#openStream());
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    const open = [...this.#streams].filter(({ state }) => state === 'open');
    if (open.length === 0) return;
    const batches = inBatches(this.#waiting);
    this.#waiting.clear();
    for (const batch of batches) open[this.#turn++ % open.length]!.send(batch);
  }

  #openStream(): CallStream {
    const stream = new CallStream(this.#channel.client, {
      onOpen: () => this.#sendWaiting(),
      onAnswer: (call, answer) => this.#settle(call, answer),
      onEnd: (calls, error, { isFailure }) => {
        this.#streams.delete(stream);
        for (const call of calls) this.#fail(call, error);
        if (this.#streams.size > 0 || this.#waiting.size === 0) return;
        // A stream that was closed, and whose calls are answered, says nothing about whether another one can be opened.
        if (isFailure) this.#tryAgain([...this.#waiting], error);
        else setTimeout(() => this.#proceed(), retryMs);
      },
    });
    return stream;
  }

  #settle(call: WaitingCall, { outcome, isReplay }: Answer): void {
    if (outcome?.$case === 'response') {
      clearTimeout(call.timer);
      if (isReplay) call.onReplay?.();
      return call.resolve(outcome.value);
    }
    const error = toServiceError(outcome?.value ?? { code: Status.INTERNAL, details: '' });
    if (error.code !== Status.UNIMPLEMENTED) return this.#fail(call, error);
    // Another service, at an address that belonged to this one until a moment ago, or an older replica.
    call.stream?.close();
    this.#tryAgain([call], error);
  }

  /** No server has done anything of these calls. */
  #tryAgain(calls: Iterable<WaitingCall>, error: ServiceError): void {
    for (const call of calls) {
      call.stream = undefined;
      call.failures += 1;
      if (call.failures < maxTries && !this.#isDisposed) this.#waiting.add(call);
      else this.#fail(call, error);
    }
    setTimeout(() => this.#proceed(), retryMs);
  }

  #fail(call: WaitingCall, error: ServiceError): void {
    this.#waiting.delete(call);
    clearTimeout(call.timer);
    call.reject(error);
  }

  #giveUp(call: WaitingCall): void {
    this.#fail(call, statusError(Status.DEADLINE_EXCEEDED));
    const { client, heardMs } = call.stream ?? { client: this.#channel.client, heardMs: this.#channel.openedMs };
    if (performance.now() - Math.max(call.sinceMs, heardMs) >= silentMs) this.#channel.replace(client);
    call.stream?.abandon(call);
    this.#proceed();
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const call of this.#waiting) this.#fail(call, statusError(Status.UNAVAILABLE));
    for (const stream of this.#streams) stream.close();
  }
}

interface Listeners {
  onOpen: () => void;
  onAnswer: (call: WaitingCall, answer: Answer) => void;
  /** Nobody knows what became of the calls. */
  onEnd: (calls: Iterable<WaitingCall>, error: ServiceError, end: { isFailure: boolean }) => void;
}

class CallStream {
  /** With which it was opened. */
  readonly client: Client;
  state: 'opening' | 'open' | 'closing' = 'opening';
  /** When the server last said something, on the clock of `performance`. */
  heardMs = 0;
  readonly #stream: ClientDuplexStream<MakeCallsRequest, MakeCallsResponse>;
  readonly #listeners: Listeners;
  /** The calls that are not answered, by their number. */
  readonly #pending = new Map<number, WaitingCall>();
  #sentCount = 0;
  /**
   * By how much the clock of the server is ahead of that of `performance`, at least: what it says takes a while to
   * arrive, so the quickest message tells the time best, and none makes a deadline come too late.
   */
  #serverAheadMs = Number.NEGATIVE_INFINITY;
  #hasAbandoned = false;
  #isEnded = false;

  constructor(client: Client, listeners: Listeners) {
    this.client = client;
    this.#listeners = listeners;
    this.#stream = client.makeBidiStreamRequest(
      makeCalls.path,
      makeCalls.requestSerialize,
      makeCalls.responseDeserialize,
    );
    this.#stream.on('data', (response: MakeCallsResponse) => this.#receive(response));
    this.#stream.on('error', ({ details }: ServiceError) => this.#end(details, { isFailure: true }));
    this.#stream.on('end', () => this.#end(Status[Status.UNAVAILABLE], { isFailure: false }));
  }

  send(batch: WaitingCall[]): void {
    const calls = batch.map((call) => {
      call.stream = this;
      this.#pending.set(this.#sentCount++, call);
      const { path, request, metadata, untilMs } = call;
      return { path, request, metadata, deadlineMs: this.#serverAheadMs + untilMs };
    });
    this.#stream.write({ calls });
  }

  close(): void {
    if (this.state === 'open') this.#stream.end();
    if (this.state === 'opening') this.#stream.cancel();
    this.state = 'closing';
  }

  /** Nobody waits for this call any more. */
  abandon(call: WaitingCall): void {
    for (const [index, each] of this.#pending) if (each === call) this.#pending.delete(index);
    this.#hasAbandoned = true;
    this.close();
    this.#cancelIfAbandoned();
  }

  /** The server may be stuck, and never end the stream. */
  #cancelIfAbandoned(): void {
    if (this.#hasAbandoned && this.#pending.size === 0) this.#stream.cancel();
  }

  #receive({ answers, isClosing, nowMs }: MakeCallsResponse): void {
    this.heardMs = performance.now();
    this.#serverAheadMs = Math.max(this.#serverAheadMs, nowMs - this.heardMs);
    for (const answer of answers) {
      const call = this.#pending.get(answer.index);
      if (call === undefined) continue;
      this.#pending.delete(answer.index);
      this.#listeners.onAnswer(call, answer);
    }
    this.#cancelIfAbandoned();
    if (isClosing) return this.close();
    if (this.state !== 'opening') return;
    this.state = 'open';
    this.#listeners.onOpen();
  }

  #end(details: string, end: { isFailure: boolean }): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.close();
    const calls = [...this.#pending.values()];
    this.#pending.clear();
    this.#listeners.onEnd(calls, toServiceError({ code: Status.UNAVAILABLE, details }), end);
  }
}

function inBatches(calls: Iterable<WaitingCall>): WaitingCall[][] {
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

function statusError(code: Status): ServiceError {
  return toServiceError({ code, details: Status[code] });
}
