import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Journal, Operation } from './journal.ts';
import { repeatUntilKnown } from './repeat-until-known.ts';

export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/crms/:crmId`. */
  path: string;
  query?: Record<string, string | boolean | undefined>;
  body?: unknown;
  /** How long the client waits for the answer, if not as long as it can take. */
  answerMs?: number;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Undefined if it is not JSON. */
  body: unknown;
}

/** A CRM as its own programs use it: one key, the public API, and nothing else. */
export interface CrmClient {
  /** One attempt. Undefined if there is no answer. */
  send(request: Request, headers?: Record<string, string>): Promise<Answer | undefined>;
  /**
   * Repeats a request that only reads until it is answered with one of these, by default with 200. Rejects if it takes
   * longer than any fault lasts.
   */
  read(path: string, query?: Request['query'], statuses?: readonly number[]): Promise<Answer>;
  /**
   * Repeats a change until it is known what became of it, as the interface tells clients to, or until time runs out.
   * Returns the last answer.
   */
  change(operation: Operation, request: Request, options?: ChangeOptions): Promise<Answer | undefined>;
}

interface ChangeOptions {
  /** Sends an Idempotency-Key. */
  withKey?: boolean;
  /** The status by which the repetition of a deletion tells that an earlier attempt was accepted. */
  goneStatus?: number;
}

export interface ClientOptions {
  gatewayUrl: string;
  crmId: string;
  key: string;
  /** The mark of the other CRM: none of its texts may ever be in an answer. */
  foreignMark: string;
  journal: Journal;
  /** When the clients give up their changes. What is there can still be read. */
  ended: AbortSignal;
}

/** A request is answered within 2 s (interface 7); this is for a machine that does many other things. */
const longestAnswerMs = 6_000;
const pauseMs = 100;
/** Of a read with all its repetitions. No fault lasts longer than 2 minutes. */
const readMs = 180_000;

export function createCrmClient(options: ClientOptions): CrmClient {
  const { journal, ended } = options;
  const send = createSend(options);
  return {
    send,
    read: async (path, query, statuses = [200]) => {
      const deadlineMs = performance.now() + readMs;
      while (performance.now() < deadlineMs) {
        const answer = await send({ method: 'GET', path, query });
        if (answer !== undefined && statuses.includes(answer.status)) return answer;
        if (answer !== undefined && outcomeOf(answer) === 'failed')
          throw new Error(`${path} was answered with ${answer.status} ${answer.text}`);
        await delay(pauseMs);
      }
      throw new Error(`${path} could not be read in ${readMs / 1_000} s`);
    },
    change: async (operation, request, { withKey = false, goneStatus } = {}) => {
      const headers: Record<string, string> = withKey ? { 'idempotency-key': randomUUID() } : {};
      let last: Answer | undefined;
      const attempt = async () => {
        const answer = (last = await send(request, headers));
        return {
          outcome: answer && outcomeOf(answer),
          isGone: answer !== undefined && answer.status === goneStatus,
          answer: answer === undefined ? 'no answer' : `${answer.status} ${codeOf(answer)}`,
          pauseMs,
        };
      };
      await repeatUntilKnown(operation, attempt, { journal, ended });
      return last;
    },
  };
}

function createSend({ gatewayUrl, crmId, key, foreignMark, journal }: ClientOptions): CrmClient['send'] {
  return async ({ method, path, query = {}, body, answerMs = longestAnswerMs }, headers = {}) => {
    const url = new URL(`${gatewayUrl}/crms/${crmId}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    journal.requests.sent += 1;
    try {
      const response = await fetch(url, {
        method,
        headers: {
          'x-service-client-id': key,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(answerMs),
      });
      const text = await response.text();
      if (text.includes(foreignMark))
        journal.surprises.push(`I9 ${method} ${path} of ${crmId} returned data of another CRM`);
      const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
      const answer: Answer = {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson ? JSON.parse(text) : undefined,
      };
      noteSurprise(journal, `${method} ${path}`, answer);
      if (answer.status >= 429)
        journal.requests.unserved.push(`${method} ${path} was answered with ${answer.status} ${codeOf(answer)}`);
      return answer;
    } catch (error) {
      // Refused, cut, or not answered in time.
      journal.requests.unserved.push(`${method} ${path} was not answered: ${describe(error)}`);
      return undefined;
    }
  };
}

/** Undefined if the attempt may have had an effect, or the answer asks to repeat it. */
function outcomeOf(answer: Answer): 'ok' | 'failed' | undefined {
  if (answer.status >= 200 && answer.status <= 299) return 'ok';
  if (answer.status >= 500 || answer.status === 429 || codeOf(answer) === 'idempotency_key.in_flight') return undefined;
  return 'failed';
}

/** What went wrong with a request that was not answered. */
export function describe(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}, ${'code' in cause ? String(cause.code) : ''} ${cause.message}` : message;
}

/** The code of a problem. */
export function codeOf({ body }: Answer): string {
  return (body as { code?: string } | undefined)?.code ?? '';
}

/** Whatever fails, a client sees a success, a rejection of what it asked for, or a 503. */
function noteSurprise(journal: Journal, request: string, answer: Answer): void {
  const isExpected = answer.status < 300 || [400, 404, 409, 422, 429, 503].includes(answer.status);
  if (!isExpected) journal.surprises.push(`${request} was answered with ${answer.status} ${answer.text.slice(0, 300)}`);
}

/** Builds a path from references: `` path`/user/${reference}` `` encodes the inserted values. */
export function path(texts: TemplateStringsArray, ...values: string[]): string {
  return texts
    .map((text, index) => text + (values[index] === undefined ? '' : encodeURIComponent(values[index])))
    .join('');
}
