import type { ErrorTable } from './error-table.ts';

/** Errors of the event feed. */
export const webhookErrors = {
  'events.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'events.expired': { category: 'gone', text: 'The event is older than those that are kept.' },
} as const satisfies ErrorTable;
