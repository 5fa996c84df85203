import type { ErrorTable } from './error-table.ts';

/** Errors of the event feed and of webhooks. */
export const webhookErrors = {
  'events.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'events.expired': { category: 'gone', text: 'Events after this position are no longer available.' },
  'webhook.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'webhook.not_found': { category: 'not_found', text: 'There is no webhook with this reference.' },
  'webhook.reference_taken': {
    category: 'conflict',
    text: 'A webhook with this reference and different content already exists.',
  },
  'webhook.limit_reached': { category: 'conflict', text: 'A CRM can have at most 10 webhooks.' },
  'webhook.tests_limited': {
    category: 'limited',
    text: 'A CRM can run at most 5 webhook tests at a time, and 30 in a minute.',
  },
  'webhook.busy': { category: 'unavailable', text: 'Too many webhook tests are running. Retry later.' },
} as const satisfies ErrorTable;
