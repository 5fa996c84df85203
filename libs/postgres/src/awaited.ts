import { DomainError } from '@scheduling/errors';
import { currentContext, type RequestContext } from '@scheduling/runtime';

type Caller = Pick<RequestContext, 'deadlineMs'> & { signal?: AbortSignal | undefined };

/** Whether a caller still waits. Work without one is always awaited. */
export function isAwaited({ deadlineMs = Number.POSITIVE_INFINITY, signal }: Caller): boolean {
  return Date.now() < deadlineMs && signal?.aborted !== true;
}

/** What becomes of work that nobody waits for. */
export function notAwaited({ signal }: Caller): DomainError {
  return new DomainError('database.unavailable', { text: 'The caller no longer waits.', cause: signal?.reason });
}

/**
 * Throws if the caller of the current request no longer waits: it may repeat the request, and believe what that is
 * told.
 */
export function requireAwaited(): void {
  const caller = currentContext() ?? {};
  if (!isAwaited(caller)) throw notAwaited(caller);
}
