import type { LeasedRow, LeasedTable } from '@scheduling/delivery';
import { type Selectable, sql } from 'kysely';
import type { ProviderNoticeTable } from '../db/schema.ts';
import { isEarlier, isEventMissing, suspiciousFailures } from '../mail/mail-table.ts';

export type ProviderNoticeRow = Selectable<ProviderNoticeTable> & LeasedRow;

/**
 * The mails to one recipient about one thing are written in the order of its versions. One that cannot be written for
 * some time does not keep the later ones waiting any more.
 */
export const providerNoticeTable: LeasedTable = {
  name: 'provider_notice',
  expires: false,
  lane: sql<string>`item.crm_id || ' ' || item.about_id`,
  // What they share is the limit for their CRM.
  host: sql<string>`item.crm_id`,
  isBlocked: sql<boolean>`${isEventMissing()} OR EXISTS (
    SELECT FROM provider_notice AS earlier
     WHERE earlier.crm_id = item.crm_id AND earlier.about_id = item.about_id AND ${isEarlier()} AND earlier.state = 'pending'
       AND earlier.failures < ${suspiciousFailures}
  )`,
};
