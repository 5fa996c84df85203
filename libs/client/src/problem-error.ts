import type { components, operations } from './api.ts';

/** The body of an error response (RFC 9457). */
export type Problem = components['schemas']['Problem'];

type ProblemOf<Responses> = {
  [Status in keyof Responses]: Responses[Status] extends { content: { 'application/problem+json': infer Body } }
    ? Body
    : never;
}[keyof Responses];

type AnyProblem = { [Name in keyof operations]: ProblemOf<operations[Name]['responses']> }[keyof operations];

/** Every error code of the API document. */
export type ProblemCode = NonNullable<AnyProblem['code']>;

/** The service has rejected a request, or another server has answered it. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  /** Undefined if the response is not one of the service, for example that of a proxy. */
  readonly code: ProblemCode | undefined;
  /** A more specific cause, for the codes that have one. */
  readonly reason: string | undefined;
  /** Every invalid field; empty if it is not about fields. */
  readonly errors: NonNullable<Problem['errors']>;
  /** Name it when you ask the operator of the service; it is in the logs. */
  readonly requestId: string | undefined;
  /** Its body has been read. */
  readonly response: Response;

  constructor(problem: Partial<Problem>, response: Response) {
    super(describe(problem, response));
    this.status = response.status;
    this.code = problem.code as ProblemCode | undefined;
    this.reason = problem.reason;
    this.errors = problem.errors ?? [];
    this.requestId = response.headers.get('X-Request-Id') ?? undefined;
    this.response = response;
  }
}

export async function toProblemError(response: Response): Promise<ProblemError> {
  const text = await response.text();
  return new ProblemError(hasContentType(response, 'application/problem+json') ? parseProblem(text) : {}, response);
}

/** What a proxy calls JSON need not be any. */
function parseProblem(text: string): Partial<Problem> {
  try {
    return (JSON.parse(text) as Problem | null) ?? {};
  } catch {
    return {};
  }
}

export function hasContentType({ headers }: Response, contentType: string): boolean {
  return headers.get('Content-Type')?.split(';')[0]!.trim().toLowerCase() === contentType;
}

/** `409 slot.unavailable (full): All seats of the appointment are taken.` */
function describe({ code, reason, detail, errors }: Partial<Problem>, { ok, status, statusText }: Response): string {
  if (code === undefined) {
    const hint = ok ? ': the response is not JSON' : status < 400 ? ': redirects are not followed' : '';
    return `${status} ${statusText}`.trim() + hint;
  }
  const fields = (errors ?? []).map(({ pointer, parameter, detail }) =>
    `${pointer ?? parameter ?? ''} ${detail}`.trim(),
  );
  return `${status} ${code}${reason === undefined ? '' : ` (${reason})`}: ${[detail, ...fields].join('; ')}`;
}
