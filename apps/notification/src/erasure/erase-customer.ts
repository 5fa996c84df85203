import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { type Database, forgetKeys } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { type LastMailIntent, storeMail } from '../mail/store-mail.ts';
import { type CustomerKey, lockCustomer } from './lock-customer.ts';

/** Removes every mail of a customer and prevents new ones from being stored; only the last mail remains. Repeating it changes nothing. */
export async function eraseMails(database: Database<NotificationSchema>, key: CustomerKey): Promise<void> {
  await database.transaction(async (tx) => {
    await lockCustomer(tx, key);
    await tx
      .insertInto('erasedCustomer')
      .values({ crmId: key.crmId, customerId: key.customerId })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await tx.deleteFrom('unwrittenMail').where('crmId', '=', key.crmId).where('customerId', '=', key.customerId).execute();
    const erased = await tx
      .deleteFrom('mail')
      .where('crmId', '=', key.crmId)
      .where('customerId', '=', key.customerId)
      .where('erasureId', 'is', null)
      .returning('id')
      .execute();
    await forgetKeys(tx, key.crmId, erased.map(({ id }) => id));
  });
}

/** Stores the last mail, if one is due, and confirms the erasure if none is pending. A pending mail confirms it when it is finished. */
export async function concludeErasure(
  tx: Transaction<NotificationSchema>,
  { crmId, erasureId }: { crmId: string; erasureId: string },
  lastMail: LastMailIntent | undefined,
): Promise<void> {
  if (lastMail) await storeMail(tx, lastMail);
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
