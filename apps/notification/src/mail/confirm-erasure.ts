import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

/**
 * Confirms the erasure of a customer, unless a last mail to them is pending: whoever finishes it confirms the erasure.
 * One at a time does this, so that the last one to finish sees that it is the last.
 */
export async function confirmErasure(
  tx: Transaction<NotificationSchema>,
  { crmId, erasureId }: { crmId: string; erasureId: string },
): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`erasure ${crmId} ${erasureId}`}, 0))`.execute(tx);
  const waiting = await tx
    .selectFrom('mail')
    .select('id')
    .where('crmId', '=', crmId)
    .where('erasureId', '=', erasureId)
    .where('state', '=', 'pending')
    .executeTakeFirst();
  if (waiting) return;
  await appendEvent(tx, events.notificationErasureConfirmed, { crmId, erasureId, service: 'notification' });
}
