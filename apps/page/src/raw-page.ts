import type { RawFailure, RawResponse } from '@scheduling/http';
import { commonHeaders } from './render-page.ts';

const statuses: Record<RawFailure, number> = {
  malformed: 400,
  timeout: 408,
  expectation_failed: 417,
  headers_too_large: 431,
  unsupported_version: 505,
};

/** For what never becomes a Fastify request: no browser of a person sends it. */
export function rawPage(failure: RawFailure): RawResponse {
  return {
    status: statuses[failure],
    contentType: 'text/plain; charset=utf-8',
    headers: commonHeaders,
    body: 'The request is not valid.\n',
  };
}
