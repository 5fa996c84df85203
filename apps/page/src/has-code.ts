import { DomainError, type ErrorCode } from '@scheduling/errors';

/** Whether a service has refused a call for this reason. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof DomainError && error.code === code;
}
