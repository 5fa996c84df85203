import type { EffectCall } from '@scheduling/messaging';
import { traceOf } from '../mail/store-unwritten-mail.ts';
import type { ProviderNotice } from './provider-mail-of-change.ts';

/** Stores that the mails about a change are to be written: that to the person, and those to the provider. */
export function storeMailsOfChange({ request: mail }: EffectCall, notices: ProviderNotice[]): EffectCall {
  const providerNotices = notices.map((notice) => ({ ...notice, ...traceOf() }));
  const request = { crmId: mail.crmId, mail, providerNotices };
  return { name: 'store_mails_of_change', request };
}
