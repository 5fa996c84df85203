import { caseInsensitiveKey } from '@scheduling/runtime';
import type { CrmRow } from '../crm/crm.ts';

/**
 * The key by which an e-mail address or a username is unique: across all CRMs, except that each sandbox has login names of its own, so its tests never take
 * one that a real person needs. No login name contains a line break, so no key of a sandbox is also one of another CRM.
 */
export function loginNameKey({ crmId, sandbox }: Pick<CrmRow, 'crmId' | 'sandbox'>, name: string): string {
  const key = caseInsensitiveKey(name);
  return sandbox ? `${crmId}\n${key}` : key;
}
