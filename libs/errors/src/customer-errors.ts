import type { ErrorTable } from './error-table.ts';

/** Errors of customers and their erasure. */
export const customerErrors = {
  'customer.not_found': { category: 'not_found', text: 'There is no customer with this reference.' },
  'customer.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'customer.reference_taken': { category: 'conflict', text: 'Another customer of this provider has this reference.' },
  'erasure.not_found': { category: 'not_found', text: 'There is no erasure with this id.' },
  'erasure.since_missing': { category: 'invalid', text: 'The start time for repeating erasures is missing.' },
} as const satisfies ErrorTable;
