import type { RawFailure, RawResponse } from '@scheduling/http';
import { RequestError, toProblem, toRefusal } from './problem.ts';

/** The problem for what never becomes a Fastify request. */
export function rawProblem(failure: RawFailure, requestId: string): RawResponse {
  const refusal = toRefusal(errorOf(failure));
  return {
    status: refusal.status,
    contentType: 'application/problem+json; charset=utf-8',
    body: JSON.stringify(toProblem(refusal, requestId)),
  };
}

function errorOf(failure: RawFailure): RequestError {
  switch (failure) {
    case 'headers_too_large':
      return new RequestError('request.headers_too_large');
    case 'timeout':
      return new RequestError('request.timeout');
    case 'unsupported_version':
      return new RequestError('request.unsupported_version');
    case 'expectation_failed':
      return new RequestError('request.expectation_failed');
    case 'malformed':
      return new RequestError('request.malformed', { detail: 'The request is not a valid HTTP request.' });
    default:
      return failure satisfies never;
  }
}
