import { type DomainCategory, DomainError, type ErrorCode, errorCodes } from '@scheduling/errors';
import { MalformedRequest, TooManyStrangers } from '@scheduling/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import { type RequestErrorCode, requestErrors } from './request-errors.ts';

/**
 * One invalid part of a request: a field of the body by its JSON pointer (RFC 6901), or a path or query parameter by
 * its name.
 */
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
  /** Further distinguishes the cause, for some codes. */
  reason?: string;
  errors?: Fault[];
}

/** A rejection by the gateway itself. Rejections by the services arrive as a DomainError. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: RequestErrorCode;
  readonly faults: Fault[];
  readonly headers: Record<string, string>;

  constructor(
    code: RequestErrorCode,
    options: { detail?: string; faults?: Fault[]; headers?: Record<string, string> } = {},
  ) {
    super(options.detail ?? requestErrors[code].text);
    this.code = code;
    this.faults = options.faults ?? [];
    this.headers = options.headers ?? {};
  }
}

/** A malformed request; the details are in the faults. */
export function invalidRequest(faults: Fault[]): RequestError {
  return new RequestError('request.invalid', { faults });
}

/** How a failure is represented in the response. */
export interface Refusal {
  status: number;
  code: string;
  detail: string;
  reason?: string | undefined;
  faults: Fault[];
  headers: Record<string, string>;
}

/**
 * The only place where a failure becomes an HTTP status. An unknown error gets a generic response: its message may
 * reveal internals.
 */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof RequestError) {
    return {
      status: statusOf(error.code),
      code: error.code,
      detail: error.message,
      faults: error.faults,
      headers: error.headers,
    };
  }
  if (error instanceof DomainError && error.code !== refusedGateway) return refusalOfDomainError(error);
  if (error instanceof MalformedRequest)
    return toRefusal(new RequestError('request.malformed', { detail: error.message }));
  if (error instanceof TooManyStrangers)
    return toRefusal(
      new RequestError('rate.strangers', {
        headers: { 'retry-after': String(error.retryAfterSeconds), connection: 'close' },
      }),
    );
  return toRefusal(new RequestError(codeOfFrameworkError(error)));
}

/**
 * Sends a problem as the response. Errors that need a human's attention are logged; the caller never sees their text.
 */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toRefusal(error);
  if (refusal.status === 500) request.log.error({ err: error }, 'unexpected error');
  if (refusal.status === 503) request.log.warn({ err: error }, 'unavailable');
  const faults = ['GET', 'HEAD'].includes(request.method) ? refusal.faults.map(asParameter) : refusal.faults;
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
    ...(refusal.reason !== undefined && { reason: refusal.reason }),
    ...(refusal.faults.length > 0 && { errors: refusal.faults }),
  };
}

/** A code that a client can receive: from one of the services, or from the gateway itself. */
export type ProblemCode = ErrorCode | RequestErrorCode;

/** The HTTP status of every response with this code. */
export function statusOf(code: ProblemCode): number {
  return code in requestErrors
    ? requestErrors[code as RequestErrorCode].status
    : statusOfCategory[errorCodes[code as ErrorCode].category];
}

/** The default message for this code, unless the place that rejects has a more specific one. */
export function textOf(code: ProblemCode): string {
  return code in requestErrors ? requestErrors[code as RequestErrorCode].text : errorCodes[code as ErrorCode].text;
}

const statusOfCategory: Record<DomainCategory, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  gone: 410,
  unprocessable: 422,
  limited: 429,
  unavailable: 503,
};

/** A service does not serve the gateway's certificate: not the fault of a client, and a human must act. */
const refusedGateway = 'caller.forbidden' satisfies ErrorCode;

/** The one code for everything that is unavailable. */
const unavailable = 'service.unavailable' satisfies ErrorCode;

function refusalOfDomainError(error: DomainError): Refusal {
  const refusal = {
    status: statusOfCategory[error.category],
    code: error.code,
    detail: error.message,
    reason: error.reason,
    faults: error.errors,
    headers: {},
  };
  switch (error.category) {
    case 'unavailable':
      // Code and message name the internal part that is down: not for callers.
      return { ...refusal, code: unavailable, detail: errorCodes[unavailable].text, headers: { 'retry-after': '1' } };
    case 'unauthenticated':
      // RFC 9110 11.6.1: a 401 must name a challenge.
      return { ...refusal, headers: { 'www-authenticate': 'ApiKey header="X-SERVICE-CLIENT-ID"' } };
    case 'conflict':
      // The only conflict that resolves by itself.
      return error.code === ('idempotency_key.in_flight' satisfies ErrorCode)
        ? { ...refusal, headers: { 'retry-after': '1' } }
        : refusal;
    case 'limited':
      return { ...refusal, headers: { 'retry-after': String(error.retryAfterSeconds ?? 1) } };
    case 'invalid':
    case 'forbidden':
    case 'not_found':
    case 'gone':
    case 'unprocessable':
      return refusal;
    default:
      return error.category satisfies never;
  }
}

/** Fastify and its parsers mark client errors with a status. */
function codeOfFrameworkError(error: unknown): RequestErrorCode {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  const known = codesOfFramework[status];
  if (known !== undefined) return known;
  return status >= 400 && status < 500 ? 'request.malformed' : 'internal';
}

const codesOfFramework: Partial<Record<number, RequestErrorCode>> = {
  408: 'request.timeout',
  413: 'request.too_large',
  414: 'request.address_too_long',
  415: 'request.unsupported_media_type',
  431: 'request.headers_too_large',
};

/** A request without a body has its fields in the query. */
function asParameter(fault: Fault): Fault {
  return 'pointer' in fault ? { parameter: fault.pointer.slice(1), detail: fault.detail } : fault;
}
