import type { ErrorTable } from './error-table.ts';

/** Errors of mails. */
export const notificationErrors = {
  'mail.state_unknown': { category: 'invalid', text: 'There is no such state of a mail.' },
} as const satisfies ErrorTable;
