import type { Database } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { confirmErasure } from '../mail/confirm-erasure.ts';
import { type LastMailIntent, storeMail } from '../mail/store-mail.ts';
import { deleteMails } from './delete-mails.ts';
import { type CustomerKey, lockCustomer } from './lock-customer.ts';

/**
 * Removes every mail of a customer and prevents new ones from being stored; only the last mail remains. A trigger removes
 * the customer from what providers are told (erase-from-lists.sql). Repeating it changes nothing. Returns whether a mail
 * to the customer is being sent: then it is to be repeated.
 */
export async function eraseMails(database: Database<NotificationSchema>, key: CustomerKey): Promise<boolean> {
  return database.transaction(async (tx) => {
    await lockCustomer(tx, key);
    await tx
      .insertInto('erasedCustomer')
      .values({ crmId: key.crmId, customerId: key.customerId })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await tx
      .deleteFrom('unwrittenMail')
      .where('crmId', '=', key.crmId)
      .where('customerId', '=', key.customerId)
      .execute();
    return deleteMails(tx, key.crmId, tx.selectFrom('mail').where('customerId', '=', key.customerId));
  });
}

/** Stores the last mails, if any are due, and confirms the erasure if none is pending. */
export async function concludeErasure(
  tx: Transaction<NotificationSchema>,
  { crmId, erasureId }: { crmId: string; erasureId: string },
  lastMails: LastMailIntent[],
): Promise<void> {
  for (const mail of lastMails) await storeMail(tx, mail);
  await confirmErasure(tx, { crmId, erasureId });
}
