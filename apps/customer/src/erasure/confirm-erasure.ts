import type { CustomerErasureConfirmed } from '@scheduling/contracts/events/v1';
import { forgetKeys } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { confirmingServices } from './erasure.ts';

interface ErasureKey {
  crmId: string;
  erasureId: string;
}

/**
 * Records that a service has erased the person; the last confirmation completes the erasure and deletes the notice.
 * That of an address is complete when all of its parts are, too.
 */
export async function confirmErasure(
  tx: Transaction<CustomerSchema>,
  { crmId, erasureId, service }: CustomerErasureConfirmed,
): Promise<void> {
  const key = { crmId, erasureId };
  if (!(await lockErasure(tx, key))) return;
  await tx
    .insertInto('erasureConfirmation')
    .values({ ...key, service })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  if (!(await completeIfConfirmed(tx, key))) return;
  const wholes = await tx
    .selectFrom('erasurePart')
    .select(['crmId', 'erasureId'])
    .where('crmId', '=', key.crmId)
    .where('partId', '=', key.erasureId)
    .orderBy('erasureId')
    .execute();
  for (const whole of wholes) {
    await lockErasure(tx, whole);
    await completeIfConfirmed(tx, whole);
  }
}

/** Two concurrent confirmations would each miss the other, so a lock on the erasure's row serialises them. */
async function lockErasure(tx: Transaction<CustomerSchema>, { crmId, erasureId }: ErasureKey): Promise<boolean> {
  const erasure = await tx
    .selectFrom('erasure')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', erasureId)
    .forUpdate()
    .executeTakeFirst();
  return erasure !== undefined;
}

/** Returns whether that completed it. The key of the request for an address leads to the address, by a digest. */
async function completeIfConfirmed(
  tx: Transaction<CustomerSchema>,
  { crmId, erasureId }: ErasureKey,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('erasure')
    .set({ state: 'complete', notice: null, address: null, completedAt: sql<Date>`now()` })
    .where('crmId', '=', crmId)
    .where('id', '=', erasureId)
    .where('state', '=', 'requested')
    .where(
      sql<boolean>`(
        SELECT count(*) FROM erasure_confirmation AS confirmation
         WHERE confirmation.crm_id = erasure.crm_id AND erasure_id = erasure.id AND service = ANY (${confirmingServices}::text[])) = ${confirmingServices.length}`,
    )
    .where(
      sql<boolean>`NOT EXISTS (
        SELECT FROM erasure_part AS part
          JOIN erasure AS other ON other.crm_id = part.crm_id AND other.id = part.part_id
         WHERE part.crm_id = erasure.crm_id AND part.erasure_id = erasure.id AND other.state <> 'complete')`,
    )
    .executeTakeFirstOrThrow();
  const isCompleted = numUpdatedRows > 0n;
  if (isCompleted) await forgetKeys(tx, crmId, [erasureId]);
  return isCompleted;
}
