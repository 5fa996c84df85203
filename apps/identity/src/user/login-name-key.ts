import type { CrmRow } from '../crm/crm.ts';
import { caseInsensitiveKey } from '../field/case-insensitive-key.ts';

/**
 * What is unique of an e-mail address or a username: across all CRMs, except that each sandbox has login names of its own, so that those of its tests
 * are never missing to a real person. No login name contains a line break.
 */
export function loginNameKey({ crmId, sandbox }: Pick<CrmRow, 'crmId' | 'sandbox'>, name: string): string {
  const key = caseInsensitiveKey(name);
  return sandbox ? `${crmId}\n${key}` : key;
}
