export { DomainError, type DomainErrorOptions, type FieldError } from './domain-error.ts';
export { type ErrorCode, errorCodes } from './error-codes.ts';
export type { DomainCategory } from './error-table.ts';
