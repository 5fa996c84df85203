import { DomainError } from '@scheduling/errors';
import { DatabaseError } from 'pg';
import { isTooLate } from './call-deadline.ts';
import { isReadOnlyError, readOnlyServer, ServerReplaced } from './server-watch.ts';
import { isUnanswered } from './watch-statements.ts';

const uniqueViolation = '23505';
const checkViolation = '23514';
/**
 * A text with a NUL character, as a value and within JSON: no validation rule of ours accepts one, but a caller may
 * have forgotten to validate.
 */
const unstorableCharacters = new Set(['22021', '22P05']);

/** SQLSTATEs after which the same request can succeed a moment later. */
const transientStates = new Set([
  // What a row refers to has been deleted since it was read, which the same request, repeated, finds.
  '23503', // foreign_key_violation
  '25P03', // idle_in_transaction_session_timeout
  // Connections are refused while an operator replaces a password, a role or a database.
  '28000', // invalid_authorization_specification
  '28P01', // invalid_password
  '3D000', // invalid_catalog_name: the database does not exist
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available: lock_timeout
]);

/** The same for all that begin with these. */
const transientClasses = [
  '08', // connection exceptions
  '53', // insufficient resources: disk, memory, connections
  '57', // operator intervention: shutdown, restart, statement_timeout
  '58', // errors of the system below Postgres
];

/** pg sets no code on these. */
const lostConnections = [
  'timeout exceeded when trying to connect',
  'Connection terminated',
  'Client has encountered a connection error',
  'Client was closed and is not queryable',
];

const networkErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ECONNABORTED',
]);

/** Whether a write failed because of the unique index or constraint with this name. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === uniqueViolation && error.constraint === constraint;
}

/** Whether a write failed because of the check with this name. */
export function isCheckViolation(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === checkViolation && error.constraint === constraint;
}

/**
 * A database that is unavailable, restarting, read-only or overloaded, has no room left on its disk, or refuses the
 * login, becomes `database.unavailable`, a text that no database can store `text.invalid`; every other error is returned unchanged.
 */
export function translatePostgresError(error: unknown): unknown {
  if (error instanceof DatabaseError && unstorableCharacters.has(error.code ?? '')) {
    return new DomainError('text.invalid');
  }
  if (isReadOnlyError(error)) return readOnlyServer(error);
  return isTransient(error) ? new DomainError('database.unavailable', { cause: error }) : error;
}

/** Whether a dependency is unavailable, which may be the own database: the same can succeed a moment later. */
export function isUnavailable(error: unknown): boolean {
  const translated = translatePostgresError(error);
  return translated instanceof DomainError && translated.category === 'unavailable';
}

function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseError) {
    const { code = '' } = error;
    return transientStates.has(code) || transientClasses.some((each) => code.startsWith(each)) || isTooLate(error);
  }
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && networkErrors.has(error.code)) return true;
  return (
    isUnanswered(error) ||
    error instanceof ServerReplaced ||
    lostConnections.some((text) => error.message.includes(text))
  );
}
