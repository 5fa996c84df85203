import { DomainError, type FieldError } from './domain-error.ts';
import type { ErrorCode } from './error-codes.ts';

/** Collects what is wrong with a request, so that the caller learns all of it at once. */
export interface FieldErrors {
  add(pointer: string, detail: string): void;
  /** Throws `code` (invalid) when there are faults. */
  throwIfAny(code: ErrorCode): void;
}

export function collectFieldErrors(): FieldErrors {
  const errors: FieldError[] = [];
  return {
    add: (pointer, detail) => {
      errors.push({ pointer, detail });
    },
    throwIfAny: (code) => {
      if (errors.length > 0) throw new DomainError(code, { errors });
    },
  };
}
