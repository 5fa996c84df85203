import { type handleBidiStreamingCall, type ServerDuplexStream, status as Status } from '@grpc/grpc-js';
import type { Answer, Call, MakeCallsRequest, MakeCallsResponse } from '@scheduling/contracts/rpc/v1';
import { toRejection } from './errors.ts';
import { callerOf } from './require-caller.ts';
import { answerCall, type IncomingCall, type ServedMethod } from './serve-call.ts';

type Stream = ServerDuplexStream<MakeCallsRequest, MakeCallsResponse>;

export interface CallStreams {
  serve: handleBidiStreamingCall<MakeCallsRequest, MakeCallsResponse>;
  /** Asks all callers to make further calls elsewhere. */
  stop(): void;
}

/**
 * After this time callers open another stream, which may be served by a new replica; up to a quarter earlier, so that a
 * caller does not replace all of its streams at once.
 */
const maxAgeMs = 10_000;
/** The longest time of a timer. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Serves the unary calls of streams (call-streams.ts), all at the same time. Those that are done in the same turn of
 * the event loop are answered at once. A call that arrives after its deadline is not begun.
 */
export function createCallStreams(methods: ReadonlyMap<string, ServedMethod>): CallStreams {
  const streams = new Set<Stream>();
  return {
    serve: (stream) => {
      const ageing = setTimeout(() => askToClose(stream), maxAgeMs * (0.75 + Math.random() / 4)).unref();
      const forget = (): void => {
        streams.delete(stream);
        clearTimeout(ageing);
      };
      streams.add(stream);
      stream.once('end', forget).once('cancelled', forget);
      serveStream(methods, stream);
    },
    stop: () => streams.forEach(askToClose),
  };
}

function serveStream(methods: ReadonlyMap<string, ServedMethod>, stream: Stream): void {
  const caller = callerOf(stream);
  const inProgress = new Set<AbortController>();
  let received = 0;
  let answers: Answer[] = [];
  let isEnded = false;
  const endIfDone = (): void => {
    if (isEnded && inProgress.size === 0 && answers.length === 0) stream.end();
  };
  const flush = (): void => {
    write(stream, { answers });
    answers = [];
    endIfDone();
  };
  const begin = async (call: Call, index: number): Promise<void> => {
    const controller = new AbortController();
    inProgress.add(controller);
    const remainingMs = remainingOf(call);
    const timer = setTimeout(() => controller.abort(), remainingMs);
    const answered = await answer(methods.get(call.path), call, { caller, signal: controller.signal, remainingMs });
    clearTimeout(timer);
    inProgress.delete(controller);
    answers.push({ index, ...answered });
    if (answers.length === 1) setImmediate(flush);
  };
  stream.on('data', ({ calls }: MakeCallsRequest) => {
    for (const call of calls) void begin(call, received++);
  });
  stream.once('end', () => {
    isEnded = true;
    endIfDone();
  });
  stream.once('cancelled', () => {
    for (const controller of inProgress) controller.abort();
  });
  // The caller waits for this: from now on, the stream is served to its end.
  write(stream, {});
}

function askToClose(stream: Stream): void {
  write(stream, { isClosing: true });
}

function write(stream: Stream, { answers = [], isClosing = false }: Partial<MakeCallsResponse>): void {
  stream.write({ answers, isClosing, nowMs: performance.now() });
}

/** For how long its caller still waits, in whole milliseconds; 0 if the call is late. */
function remainingOf({ deadlineMs }: Call): number {
  return Math.min(maxTimerMs, Math.max(0, Math.floor(deadlineMs - performance.now()) || 0));
}

interface CallContext extends Pick<IncomingCall, 'caller' | 'signal'> {
  remainingMs: number;
}

/** Never rejects. */
async function answer(
  served: ServedMethod | undefined,
  call: Call,
  { remainingMs, ...context }: CallContext,
): Promise<Omit<Answer, 'index'>> {
  if (remainingMs === 0) return rejection(Status.DEADLINE_EXCEEDED, 'The call came too late.');
  if (served === undefined) return rejection(Status.UNIMPLEMENTED, `This server has no ${call.path}.`);
  const { requestDeserialize, responseSerialize } = served.method;
  try {
    const answered = await answerCall(served, {
      ...context,
      request: requestDeserialize(call.request),
      header: (name) => call.metadata[name],
      deadlineMs: Date.now() + remainingMs,
    });
    if (!('response' in answered))
      return { outcome: { $case: 'rejection', value: toRejection(answered) }, isReplay: false };
    const value = responseSerialize(answered.response as never);
    return { outcome: { $case: 'response', value }, isReplay: answered.isReplay };
  } catch {
    return rejection(Status.INTERNAL, 'The message is malformed.');
  }
}

function rejection(code: Status, details: string): Omit<Answer, 'index'> {
  return { outcome: { $case: 'rejection', value: { code, details } }, isReplay: false };
}
