import type { CustomerErasureConfirmed } from '@scheduling/contracts/events/v1';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { confirmingServices } from './erasure.ts';

/** Records that a service has erased the person; the last confirmation completes the erasure and deletes the notice. */
export async function confirmErasure(
  tx: Transaction<CustomerSchema>,
  { crmId, erasureId, service }: CustomerErasureConfirmed,
): Promise<void> {
  // Two concurrent confirmations would each miss the other, so a lock on the erasure's row serialises them.
  const erasure = await tx
    .selectFrom('erasure')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', erasureId)
    .forUpdate()
    .executeTakeFirst();
  if (erasure === undefined) return;
  await tx
    .insertInto('erasureConfirmation')
    .values({ crmId, erasureId, service })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const confirmations = await tx
    .selectFrom('erasureConfirmation')
    .select('service')
    .where('crmId', '=', crmId)
    .where('erasureId', '=', erasureId)
    .execute();
  const confirmed = new Set(confirmations.map((confirmation) => confirmation.service));
  if (!confirmingServices.every((name) => confirmed.has(name))) return;
  await tx
    .updateTable('erasure')
    .set({ state: 'complete', notice: null, completedAt: sql<Date>`now()` })
    .where('crmId', '=', crmId)
    .where('id', '=', erasureId)
    .where('state', '=', 'requested')
    .execute();
}
