import { type ErrorCode, DomainError, errorCodes } from '@scheduling/errors';
import recorded from './problem-examples.json' with { type: 'json' };
import { type Problem, type ProblemCode, RequestError, toProblem, toRefusal } from './problem.ts';
import type { RequestErrorCode } from './request-errors.ts';

type Json = Record<string, unknown>;

/** In all examples. */
const requestId = '5c0f1f0e-3a52-4d0c-9f2b-0a3f6f5b7d11';

/**
 * Problems that the gateway has sent, by their code. For a code that is used for requests with and without a body,
 * `<code>-parameter` is that of a request without one, whose errors name parameters. Recorded by a test: `npx vitest
 * run apps/contract-tests/test/problem-examples --update`.
 */
const sent: Record<string, Problem> = recorded;

/** References to the examples of these codes, which are components of the document. */
export function referToExamples(codes: string[], { hasBody }: { hasBody: boolean }, components: Json): Json {
  return Object.fromEntries(
    codes.map((code) => {
      const withParameter = `${code}-parameter`;
      const name = !hasBody && withParameter in sent ? withParameter : code;
      components[name] ??= { value: sent[name] ?? compose(code as ProblemCode) };
      return [code, { $ref: `#/components/examples/${name}` }];
    }),
  );
}

/** What the gateway sends with this code, for one that no test can provoke. */
function compose(code: ProblemCode): Problem {
  const error = code in errorCodes ? new DomainError(code as ErrorCode) : new RequestError(code as RequestErrorCode);
  return toProblem(toRefusal(error), requestId);
}
