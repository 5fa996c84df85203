import { type handleBidiStreamingCall, type ServerDuplexStream, status as Status } from '@grpc/grpc-js';
import type { Answer, Call, MakeCallsRequest, MakeCallsResponse } from '@scheduling/contracts/rpc/v1';
import { toRejection } from './errors.ts';
import { clockHeader, toMetadata } from './headers.ts';
import type { IncomingCall } from './incoming-call.ts';
import { callerOf } from './require-caller.ts';
import { answerCall, type ServedMethod } from './serve-call.ts';

export interface CallStreams {
  serve: handleBidiStreamingCall<MakeCallsRequest, MakeCallsResponse>;
  /** Tells all callers to make further calls elsewhere. */
  stop(): void;
}

/**
 * Serves the unary calls of streams, all at the same time, each like a call of its own. Those that are done in the same
 * turn of the event loop are answered at once. A call that arrives after its deadline is not begun.
 */
export function createCallStreams(methods: ReadonlyMap<string, ServedMethod>): CallStreams {
  const streams = new Set<ServerDuplexStream<MakeCallsRequest, MakeCallsResponse>>();
  return {
    serve: (stream) => {
      streams.add(stream);
      for (const event of ['end', 'cancelled']) stream.once(event, () => streams.delete(stream));
      serveStream(methods, stream);
    },
    stop: () => {
      for (const stream of streams) stream.write({ answers: [], isStopping: true, nowMs: performance.now() });
    },
  };
}

function serveStream(
  methods: ReadonlyMap<string, ServedMethod>,
  stream: ServerDuplexStream<MakeCallsRequest, MakeCallsResponse>,
): void {
  // The caller waits for this: from now on, the stream is served to its end.
  stream.sendMetadata(toMetadata({ [clockHeader]: String(performance.now()) }));
  const caller = callerOf(stream);
  const inProgress = new Set<AbortController>();
  let received = 0;
  let answers: Answer[] = [];
  let isEnded = false;
  const endIfDone = (): void => {
    if (isEnded && inProgress.size === 0 && answers.length === 0) stream.end();
  };
  const flush = (): void => {
    stream.write({ answers, isStopping: false, nowMs: performance.now() });
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
  stream.on('end', () => {
    isEnded = true;
    endIfDone();
  });
  stream.once('cancelled', () => {
    for (const controller of inProgress) controller.abort();
  });
}

/**
 * For how long its caller still waits, in whole milliseconds. 0 if the call is late: a timer with a negative time would
 * be reported as a fault.
 */
function remainingOf({ timeoutMs, deadlineMs = Number.POSITIVE_INFINITY }: Call): number {
  return Math.max(0, Math.min(timeoutMs, Math.floor(deadlineMs - performance.now())));
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
    const incoming = {
      ...context,
      request: requestDeserialize(call.request),
      header: (name: string) => call.metadata[name],
      deadlineMs: Date.now() + remainingMs,
    };
    const answered = await answerCall(served, incoming);
    if (!('response' in answered))
      return { outcome: { $case: 'rejection', value: toRejection(answered) }, isReplay: false };
    return {
      outcome: { $case: 'response', value: responseSerialize(answered.response as never) },
      isReplay: answered.isReplay,
    };
  } catch {
    return rejection(Status.INTERNAL, 'The message is malformed.');
  }
}

function rejection(code: Status, details: string): Omit<Answer, 'index'> {
  return { outcome: { $case: 'rejection', value: { code, details } }, isReplay: false };
}
