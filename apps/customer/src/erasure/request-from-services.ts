import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { type ErasureRow, requestOf } from './erasure.ts';

/** Asks the other services to erase the person, or what is left of the address, unless they have been asked. */
export async function requestFromServices(
  tx: Transaction<CustomerSchema>,
  { crmId, id }: Pick<ErasureRow, 'crmId' | 'id'>,
): Promise<void> {
  const requested = await tx
    .updateTable('erasure')
    .set({ state: 'requested', publishedAt: sql<Date>`now()` })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('state', '=', 'checking')
    // Not if the erasure of an address was requested again in the meantime, and is to search again.
    .where(sql<boolean>`published_at > '-infinity'`)
    .returningAll()
    .execute();
  await appendEvent(tx, events.customerErasureRequested, ...requested.map(requestOf));
}
