import type { ErrorTable } from './error-table.ts';

/** Errors of the event feed and of webhooks. */
export const webhookErrors = {
  'events.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'events.expired': { category: 'gone', text: 'Events after the position are no longer kept.' },
  'webhook.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'webhook.not_found': { category: 'not_found', text: 'There is no webhook with this reference.' },
  'webhook.reference_taken': { category: 'conflict', text: 'A webhook with this reference and other content exists.' },
  'webhook.limit_reached': { category: 'conflict', text: 'A CRM can have at most 10 webhooks.' },
  'webhook.tests_limited': {
    category: 'limited',
    text: 'At most 5 tests of a CRM are sent at a time, and 30 in a minute.',
  },
  'webhook.busy': { category: 'unavailable', text: 'Very many webhooks are being tested.' },
} as const satisfies ErrorTable;
