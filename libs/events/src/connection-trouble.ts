import { errors } from '@nats-io/transport-node';
import type { Logger } from '@scheduling/runtime';

/** NATS responds, but does not accept the user, the password, or that there is none. */
export function isRejectedUser(error: unknown): boolean {
  return error instanceof errors.AuthorizationError;
}

/** The user may not do what it tried to do. */
export function isDenied(error: unknown): boolean {
  return error instanceof errors.PermissionViolationError;
}

/** An attempt to connect is made twice a second; the same trouble is logged once in this time. */
const repeatMs = 30_000;

/** Returns a function that logs why NATS cannot be used. No error of the client contains the password. */
export function createTroubleLog(logger: Logger): (error: unknown) => void {
  const loggedMs = new Map<string, number>();
  return (error) => {
    const trouble = describeTrouble(error);
    const now = performance.now();
    if (now - (loggedMs.get(trouble) ?? Number.NEGATIVE_INFINITY) < repeatMs) return;
    loggedMs.set(trouble, now);
    logger.warn({ err: error }, trouble);
  };
}

function describeTrouble(error: unknown): string {
  if (isRejectedUser(error)) return 'NATS rejects the user, retrying';
  if (isDenied(error)) return 'the permissions of the NATS user do not suffice';
  return 'NATS does not respond, retrying';
}
