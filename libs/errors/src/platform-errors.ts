import type { ErrorTable } from './error-table.ts';

/** Errors of the platform that every service is built on: raised by the other libraries. */
export const platformErrors = {
  'idempotency_key.in_flight': {
    category: 'conflict',
    text: 'A request with this Idempotency-Key is still in progress. Retry later.',
  },
  'idempotency_key.reused': {
    category: 'unprocessable',
    text: 'This Idempotency-Key was used for a request with different content.',
  },
  'text.invalid': { category: 'invalid', text: 'A text contains a character that cannot be stored.' },
  'service.unavailable': { category: 'unavailable', text: 'The service is temporarily unavailable. Please try again.' },
  'database.unavailable': { category: 'unavailable', text: 'The database does not respond.' },
  'broker.unavailable': { category: 'unavailable', text: 'NATS does not respond.' },
  'caller.forbidden': { category: 'forbidden', text: 'The certificate of the caller does not permit this call.' },
  'dead_letter.not_found': { category: 'not_found', text: 'There is no such dead letter.' },
} as const satisfies ErrorTable;
