import type { ErrorTable } from './error-table.ts';

/** Errors of mails. */
export const notificationErrors = {
  'mail.not_found': { category: 'not_found', text: 'There is no mail with this id about this participation.' },
  'mail.pending': { category: 'conflict', text: 'The mail, or another copy of it, has not been sent yet.' },
  'mail.outdated': {
    category: 'conflict',
    text: 'The participation has changed since this mail. A later change has a mail of its own.',
  },
  'mail.address_missing': { category: 'conflict', text: 'The participation has no e-mail address.' },
  'mail.state_unknown': { category: 'invalid', text: 'There is no such mail state.' },
} as const satisfies ErrorTable;
