import { addressKey } from '@scheduling/runtime';
import type { CrmRow } from '../crm/crm.ts';
import { usernameKey } from '../field/username-key.ts';

type KeyScope = Pick<CrmRow, 'crmId' | 'sandbox'>;

/** The key by which an e-mail address of a user is unique. */
export function uniqueEmailKey(scope: KeyScope, email: string): string {
  return within(scope, addressKey(email));
}

/** The key by which a username is unique. */
export function uniqueUsernameKey(scope: KeyScope, username: string): string {
  return within(scope, usernameKey(username));
}

/**
 * Login names are unique across all CRMs, except that each sandbox has login names of its own, so its tests never take one that a real person needs. No
 * login name contains a line break, so no key of a sandbox is also one of another CRM.
 */
function within({ crmId, sandbox }: KeyScope, key: string): string {
  return sandbox ? `${crmId}\n${key}` : key;
}
