export { DomainError, type DomainErrorOptions, type FieldError, type SlotReason } from './domain-error.ts';
export { type ErrorCode, errorCodes } from './error-codes.ts';
export type { DomainCategory } from './error-table.ts';
export { collectFieldErrors, type FieldErrors } from './field-errors.ts';
export { undefinedIfNotFound } from './undefined-if-not-found.ts';
