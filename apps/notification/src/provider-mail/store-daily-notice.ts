import type { DailyListDue } from '@scheduling/contracts/events/v1';
import type { EffectCall } from '@scheduling/messaging';
import { nameUuid } from '@scheduling/runtime';
import { traceOf } from '../mail/store-unwritten-mail.ts';

/**
 * Stores that the list of a day is to be written. Whatever event says that it is due, it is the same mail: calendar may
 * say so again after its database was restored from a backup, or the clock of a sandbox was set back.
 */
export function storeDailyNotice({ crmId, providerId, date, expiresAt }: DailyListDue): EffectCall {
  const id = nameUuid(providerId, `day ${date} PROVIDER`);
  const request = { crmId, eventId: id, aboutId: id, providerId, day: date, expiresAt, ...traceOf() };
  return { name: 'store_daily_notice', request };
}
