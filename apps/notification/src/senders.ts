import type { Crm, IdentityServiceService, Provider } from '@scheduling/contracts/identity/v1';
import type { ClientOf } from '@scheduling/rpc';

/** Who sends a mail. */
export interface Senders {
  crm: Crm;
  provider: Provider;
}

export type FindSenders = (crmId: string, providerId: string) => Promise<Senders>;

/** Asks identity for the current data. Mails of one provider that are written at the same time share a call. */
export function createSenders(identity: ClientOf<typeof IdentityServiceService>): FindSenders {
  const calls = new Map<string, Promise<Senders>>();
  const ask = async (crmId: string, providerId: string): Promise<Senders> => {
    const [{ crm }, { provider }] = await Promise.all([
      identity.getCrm({ crmId }),
      identity.getProvider({ crmId, key: { $case: 'id', value: providerId } }),
    ]);
    return { crm: crm!, provider: provider! };
  };
  return (crmId, providerId) => {
    const key = `${crmId} ${providerId}`;
    const call = calls.get(key) ?? ask(crmId, providerId).finally(() => calls.delete(key));
    calls.set(key, call);
    return call;
  };
}
