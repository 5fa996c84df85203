import { type handleServerStreamingCall, status as Status } from '@grpc/grpc-js';
import type { Answer, Call, CallAllRequest, CallAllResponse } from '@scheduling/contracts/rpc/v1';
import { toRejection } from './errors.ts';
import { cancellation, type IncomingCall } from './incoming-call.ts';
import { callerOf } from './require-caller.ts';
import { answerCall, type ServedMethod } from './serve-call.ts';

/** Serves several unary calls at the same time, each like a call of its own. Those that are done in the same turn of the event loop are answered together. */
export function serveTogether(methods: ReadonlyMap<string, ServedMethod>): handleServerStreamingCall<CallAllRequest, CallAllResponse> {
  return (stream) => {
    const { calls } = stream.request;
    const common = { caller: callerOf(stream), signal: cancellation(stream) };
    if (calls.length === 0) stream.end();
    let unanswered = calls.length;
    let answers: Answer[] = [];
    const flush = (): void => {
      unanswered -= answers.length;
      stream.write({ answers });
      answers = [];
      if (unanswered === 0) stream.end();
    };
    for (const [index, call] of calls.entries()) {
      void answer(methods.get(call.path), call, common).then((outcome) => {
        answers.push({ index, outcome });
        if (answers.length === 1) setImmediate(flush);
      });
    }
  };
}

async function answer(served: ServedMethod | undefined, call: Call, common: Pick<IncomingCall, 'caller' | 'signal'>): Promise<Answer['outcome']> {
  if (served === undefined) return rejection(Status.UNIMPLEMENTED, `This server has no ${call.path}.`);
  const { requestDeserialize, responseSerialize } = served.method;
  try {
    const incoming = { ...common, request: requestDeserialize(call.request), header: (name: string) => call.metadata[name], deadlineMs: Date.now() + call.timeoutMs };
    const answered = await answerCall(served, incoming);
    if (!('response' in answered)) return { $case: 'rejection', value: toRejection(answered) };
    return { $case: 'response', value: responseSerialize(answered.response as never) };
  } catch {
    return rejection(Status.INTERNAL, 'The message is malformed.');
  }
}

function rejection(code: Status, details: string): Answer['outcome'] {
  return { $case: 'rejection', value: { code, details } };
}
