import type { CustomerErasureRequested } from '@scheduling/contracts/events/v1';
import type { DatabaseService } from '@scheduling/runtime';
import type { Selectable } from 'kysely';
import type { ErasureTable } from '../db/schema.ts';

export type ErasureRow = Selectable<ErasureTable>;

/** The services that must confirm before an erasure is complete. */
export const confirmingServices = ['calendar', 'notification'] as const satisfies readonly DatabaseService[];

/** How long the address of a deleted person may be kept for the last mail (interface 4.4), in minutes. */
export const noticeMinutes = 10;

/** The event that asks the other services to erase the person, or what is left of the address. */
export function requestOf({
  crmId,
  customerId,
  id: erasureId,
  subject,
  notice,
}: Pick<ErasureRow, 'crmId' | 'customerId' | 'id' | 'subject' | 'notice'>): CustomerErasureRequested {
  return { crmId, customerId, erasureId, notify: notice !== null, byAddress: subject === 'address' };
}
