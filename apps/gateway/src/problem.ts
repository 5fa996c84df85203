import { DomainError, type DomainCategory } from '@scheduling/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';

/** One part of a request at fault: a field of the body by its JSON pointer (RFC 6901), or a path or query parameter by its name. */
export type Fault = { pointer: string; detail: string } | { parameter: string; detail: string };

/** An `application/problem+json` body (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The request id. */
  instance: string;
  code: string;
  errors?: Fault[];
}

/** A refusal by the gateway itself. What the services refuse arrives as a DomainError. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  readonly code: string;
  readonly faults: Fault[];
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, detail: string, options: { faults?: Fault[]; headers?: Record<string, string> } = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.faults = options.faults ?? [];
    this.headers = options.headers ?? {};
  }
}

/** A request whose parts have the wrong shape; the details are in the faults. */
export function invalidRequest(faults: Fault[]): RequestError {
  return new RequestError(400, 'request.invalid', 'The request is invalid. Each invalid field is listed in errors.', { faults });
}

/** What a failure becomes on the wire. */
export interface Refusal {
  status: number;
  code: string;
  detail: string;
  faults: Fault[];
  headers: Record<string, string>;
}

/** The only place where a failure becomes an HTTP status. An error that no rule knows is answered generically: its text may name what is inside. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof RequestError) {
    return { status: error.status, code: error.code, detail: error.message, faults: error.faults, headers: error.headers };
  }
  if (error instanceof DomainError) return refusalOfDomainError(error);
  const status = statusOfFrameworkError(error);
  if (status !== undefined) return { status, ...frameworkRefusals[status], faults: [], headers: {} };
  return { status: 500, code: 'internal', detail: 'Something went wrong on our side.', faults: [], headers: {} };
}

/** Answers a request with a problem. Errors that a human should look at are logged; the caller never sees their text. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toRefusal(error);
  if (refusal.status === 500) request.log.error({ err: error }, 'unexpected error');
  if (refusal.status === 503) request.log.warn({ err: error }, 'unavailable');
  const faults = request.method === 'GET' ? refusal.faults.map(asParameter) : refusal.faults;
  return reply
    .code(refusal.status)
    .headers({ ...refusal.headers, 'x-request-id': request.id })
    .type('application/problem+json')
    .send(JSON.stringify(toProblem({ ...refusal, faults }, request.id)));
}

export function toProblem(refusal: Omit<Refusal, 'headers'>, requestId: string): Problem {
  return {
    type: 'about:blank',
    title: STATUS_CODES[refusal.status] ?? 'Error',
    status: refusal.status,
    detail: refusal.detail,
    instance: requestId,
    code: refusal.code,
    ...(refusal.faults.length > 0 && { errors: refusal.faults }),
  };
}

const statusOfCategory: Record<DomainCategory, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  unprocessable: 422,
  limited: 429,
  unavailable: 503,
};

function refusalOfDomainError(error: DomainError): Refusal {
  const refusal = { status: statusOfCategory[error.category], code: error.code, detail: error.message, faults: error.errors, headers: {} };
  switch (error.category) {
    case 'unavailable':
      // Code and message say what is down inside: nothing for callers.
      return { ...refusal, code: 'service.unavailable', detail: 'The service is temporarily unavailable. Please try again.', headers: { 'retry-after': '1' } };
    case 'unauthenticated':
      // RFC 9110 11.6.1: a 401 names a challenge.
      return { ...refusal, headers: { 'www-authenticate': 'ApiKey header="X-SERVICE-CLIENT-ID"' } };
    case 'conflict':
      // The one conflict that passes by itself.
      return error.code === 'idempotency_key.in_flight' ? { ...refusal, headers: { 'retry-after': '1' } } : refusal;
    case 'limited':
      return { ...refusal, headers: { 'retry-after': String(error.retryAfterSeconds ?? 1) } };
    case 'invalid':
    case 'forbidden':
    case 'not_found':
    case 'unprocessable':
      return refusal;
    default:
      return error.category satisfies never;
  }
}

const frameworkRefusals = {
  400: { code: 'request.malformed', detail: 'The request is malformed: its URL, headers or body cannot be parsed.' },
  408: { code: 'request.timeout', detail: 'The request did not arrive in time.' },
  413: { code: 'request.too_large', detail: 'The body is larger than 1 MiB.' },
  414: { code: 'request.address_too_long', detail: 'The URL of the request is too long.' },
  415: { code: 'request.unsupported_media_type', detail: 'The body must be JSON, with Content-Type: application/json.' },
  431: { code: 'request.headers_too_large', detail: 'The headers of the request are too large.' },
} satisfies Record<number, Pick<Refusal, 'code' | 'detail'>>;

/** Fastify and its parsers mark what the client did wrong with a status. */
function statusOfFrameworkError(error: unknown): keyof typeof frameworkRefusals | undefined {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : Number.NaN;
  if (status in frameworkRefusals) return status as keyof typeof frameworkRefusals;
  return status > 400 && status < 500 ? 400 : undefined;
}

/** A request without a body has its fields in the query. */
function asParameter(fault: Fault): Fault {
  return 'pointer' in fault ? { parameter: fault.pointer.slice(1), detail: fault.detail } : fault;
}
