import type { EffectCall } from '@scheduling/messaging';
import { traceOf } from '../mail/store-unwritten-mail.ts';
import type { ProviderNotice } from './provider-mail-of-change.ts';

/** Stores that mails about a participation are to be written: one to the person, if any, and those to the provider. */
export function storeMailsOfChange(crmId: string, mail: EffectCall | undefined, notices: ProviderNotice[]): EffectCall {
  const providerNotices = notices.map((notice) => ({ ...notice, ...traceOf() }));
  const request = { crmId, mail: mail?.request, providerNotices };
  return { name: 'store_mails_of_change', request };
}
