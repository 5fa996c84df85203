import { parseRetryAfter } from './retry-after.ts';

interface RetryOptions {
  fetch: (request: Request) => Promise<Response>;
  retryForMs: number;
  attemptMs: number;
  /** Called when an attempt has failed without telling whether it had an effect. */
  onUnanswered: (request: Request) => void;
}

const firstWaitMs = 200;
const longestWaitMs = 5_000;
/** Too many requests; not available, as the service says it, or a proxy before it. */
const retriedStatuses = new Set([429, 502, 503, 504]);

/**
 * A `fetch` that repeats requests which are safe to repeat. It waits for as long as `Retry-After` says, at least 0.2 s
 * after the first attempt and twice as long after each further one, up to 5 s. Responses have been read completely.
 */
export function retrying({
  fetch,
  retryForMs,
  attemptMs,
  onUnanswered,
}: RetryOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const endsAt = performance.now() + retryForMs;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await attemptOnce(request.clone(), fetch, attemptMs);
      request.signal.throwIfAborted();
      const response = 'response' in outcome ? outcome.response : undefined;
      if (response !== undefined && !(await mayBeRepeated(response))) return response;
      const waitMs = Math.max(
        backoffMs(attempt),
        parseRetryAfter(response?.headers.get('Retry-After') ?? null, Date.now()),
      );
      if (performance.now() + waitMs > endsAt) {
        if ('response' in outcome) return outcome.response;
        throw outcome.error;
      }
      if (response?.status !== 429) onUnanswered(request);
      await delay(waitMs, request.signal);
    }
  };
}

type Outcome = { response: Response } | { error: unknown };

async function attemptOnce(request: Request, fetch: RetryOptions['fetch'], attemptMs: number): Promise<Outcome> {
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(new DOMException(`No complete response within ${attemptMs} ms.`, 'TimeoutError')),
    attemptMs,
  );
  try {
    // To follow a redirect would send the key and the body to whatever host it names.
    const response = await fetch(
      new Request(request, { redirect: 'manual', signal: AbortSignal.any([request.signal, timeout.signal]) }),
    );
    const body = await response.arrayBuffer();
    return { response: new Response(body.byteLength === 0 ? null : body, response) };
  } catch (error) {
    return { error };
  } finally {
    clearTimeout(timer);
  }
}

async function mayBeRepeated(response: Response): Promise<boolean> {
  if (response.status === 409) return (await response.clone().text()).includes('"idempotency_key.in_flight"');
  return retriedStatuses.has(response.status);
}

/** With a random part, so that clients which failed together do not come back together. */
function backoffMs(attempt: number): number {
  return Math.min(firstWaitMs * 2 ** attempt, longestWaitMs) * (0.75 + Math.random() / 2);
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal.addEventListener('abort', abort, { once: true });
  });
}
