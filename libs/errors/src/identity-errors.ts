import type { ErrorTable } from './error-table.ts';

/** Errors of users, accounts, providers, staff, CRMs and their keys. Messages fixed by interface 7 are verbatim. */
export const identityErrors = {
  'key.missing': { category: 'unauthenticated', text: 'The X-SERVICE-CLIENT-ID header is missing.' },
  'key.invalid': { category: 'unauthenticated', text: 'The API key is unknown, expired or revoked.' },
  'key.invalid_expiry': { category: 'invalid', text: 'The expiry of a key must be in the future.' },
  'key.invalid_scope': { category: 'invalid', text: 'The scope of a key must be read, book or all.' },
  'key.not_found': { category: 'not_found', text: 'There is no key with this prefix.' },
  'crm.forbidden': { category: 'forbidden', text: 'The API key does not belong to this CRM.' },
  'crm.invalid': { category: 'invalid', text: 'The settings of the CRM are invalid.' },
  'crm.exists': { category: 'conflict', text: 'A CRM with this crmId already exists.' },
  'crm.not_found': { category: 'not_found', text: 'There is no CRM with this crmId.' },
  'user.not_found': { category: 'not_found', text: 'There is no user with this reference.' },
  'user.email_taken': { category: 'conflict', text: 'User with given email already exists.' },
  'user.username_taken': { category: 'conflict', text: 'User with given username already exists.' },
  'user.email_verified': { category: 'conflict', text: 'The e-mail address of this user is already verified.' },
  'user.email_derived': {
    category: 'conflict',
    text: 'The e-mail address of this user is a derived one. No mail is sent to it.',
  },
  'user.owner': { category: 'conflict', text: 'The owner of an account or a provider cannot be deleted.' },
  'verification.not_found': {
    category: 'not_found',
    text: 'This verification link does not exist, or has been replaced by a newer one.',
  },
  'verification.used': { category: 'not_found', text: 'This verification link has already been used.' },
  'verification.expired': { category: 'not_found', text: 'This verification link has expired.' },
  'verification.limited': {
    category: 'limited',
    text: 'A user is sent at most one verification mail in a minute, and five in 24 hours.',
  },
  'branch.unknown': { category: 'not_found', text: 'Unable to find specified branch.' },
  'sandbox.not_found': { category: 'not_found', text: 'This CRM is not a sandbox.' },
  'account.not_found': { category: 'not_found', text: 'There is no account with this reference.' },
  'account.owner_not_found': { category: 'not_found', text: 'no user found for ownerReference' },
  'provider.not_found': { category: 'not_found', text: 'There is no provider with this reference.' },
  'provider.owner_not_found': { category: 'not_found', text: 'no user found for ownerReference' },
  'provider.account_not_found': { category: 'not_found', text: 'no account found for accountReference' },
  'provider.time_zone_unknown': { category: 'invalid', text: 'There is no time zone with this name.' },
  'staff.not_found': { category: 'not_found', text: 'This provider has no staff member with this reference.' },
  'staff.owner': { category: 'conflict', text: 'The owner of a provider cannot be removed from its staff.' },
} as const satisfies ErrorTable;
