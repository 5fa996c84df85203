import type { StackInfo } from '@scheduling/stack';
import { createCrm, createPractice } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

/**
 * A CRM with one provider, whose requests are measured. Each case has its own, so that no case sees the data of
 * another.
 */
export interface Tenant {
  crmId: string;
  key: string;
  providerReference: string;
  providerId: string;
}

export async function createTenant(stack: StackInfo): Promise<Tenant> {
  const crm = await createCrm({}, stack);
  const { provider } = await createPractice(crm, { timeZone: 'UTC' });
  const [row] = await query<{ id: string }>(
    'identity',
    'SELECT id FROM provider WHERE crm_id = $1',
    [crm.crmId],
    stack,
  );
  return { crmId: crm.crmId, key: crm.key, providerReference: provider, providerId: row!.id };
}
