import { DomainError } from '@scheduling/errors';
import { DatabaseError } from 'pg';
import { isTooLate } from './call-deadline.ts';
import { isUnanswered } from './close-when-silent.ts';

const uniqueViolation = '23505';
/**
 * A text with a NUL character, as a value and within JSON: no validation rule of ours accepts one, but a caller may
 * have forgotten to validate.
 */
const unstorableCharacters = new Set(['22021', '22P05']);

/** SQLSTATEs after which the same request can succeed a moment later. */
const transientStates = new Set([
  // Connections are refused while an operator replaces a password, a role or a database.
  '28000', // invalid_authorization_specification
  '28P01', // invalid_password
  '3D000', // invalid_catalog_name: the database does not exist
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '53100', // disk_full
  '53200', // out_of_memory
  '53300', // too_many_connections
  '55P03', // lock_not_available: lock_timeout
  '57014', // query_canceled: statement_timeout
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '58030', // io_error
]);

const networkErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);

/** Whether a write failed because of the unique index or constraint with this name. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === uniqueViolation && error.constraint === constraint;
}

/**
 * A database that is unavailable, restarting or overloaded, has no room left on its disk, or refuses the login, becomes
 * `database.unavailable`, a text that no database can store `text.invalid`; every other error is returned unchanged.
 */
export function translatePostgresError(error: unknown): unknown {
  if (error instanceof DatabaseError && unstorableCharacters.has(error.code ?? '')) {
    return new DomainError('text.invalid');
  }
  return isTransient(error) ? new DomainError('database.unavailable', { cause: error }) : error;
}

/** Whether a dependency is unavailable, which may be the own database: the same can succeed a moment later. */
export function isUnavailable(error: unknown): boolean {
  const translated = translatePostgresError(error);
  return translated instanceof DomainError && translated.category === 'unavailable';
}

function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseError)
    return transientStates.has(error.code ?? '') || error.code?.startsWith('08') === true || isTooLate(error);
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && networkErrors.has(error.code)) return true;
  // pg sets no code on these either.
  return (
    isUnanswered(error) ||
    /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error/.test(
      error.message,
    )
  );
}
