import type { Database } from '@scheduling/postgres';
import { currentContext, currentTraceparent, newRequestId } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import type { MailContent, NotificationSchema } from '../db/schema.ts';
import { isErased, lockCustomer } from '../erasure/lock-customer.ts';
import type { MailTemplate } from '../language/texts.ts';

export interface MailIntent {
  crmId: string;
  eventId: string;
  aboutId: string;
  version: number;
  template: MailTemplate;
  /** The recipient, if the person is a customer. */
  customerId?: string | undefined;
  content: MailContent;
}

/** The last mail of an erased person: it is sent until it expires, and the erasure is confirmed when it is finished. */
export interface LastMailIntent extends MailIntent {
  customerId: string;
  erasureId: string;
  expiresAt: Date;
}

/**
 * Stores the intent to send; the delivery does the rest. A repeated intent has no effect, nor does a mail to a customer whose data was erased
 * while it was being written.
 */
export async function storeMail(tx: Transaction<NotificationSchema>, intent: MailIntent): Promise<void> {
  if (intent.customerId !== undefined) {
    await lockCustomer(tx, 'shared', { crmId: intent.crmId, customerId: intent.customerId });
    if (await isErased(tx, { crmId: intent.crmId, customerId: intent.customerId })) return;
  }
  await insertMail(tx, intent);
}

export async function storeLastMail(tx: Transaction<NotificationSchema>, intent: LastMailIntent): Promise<void> {
  await insertMail(tx, intent, intent);
}

async function insertMail(
  tx: Transaction<NotificationSchema>,
  intent: MailIntent,
  last?: Pick<LastMailIntent, 'erasureId' | 'expiresAt'>,
): Promise<void> {
  const { crmId, eventId, aboutId, version, template, customerId, content } = intent;
  await tx
    .insertInto('mail')
    .values({
      crmId,
      eventId,
      aboutId,
      version,
      template,
      customerId,
      erasureId: last?.erasureId,
      expiresAt: last?.expiresAt,
      requestId: currentContext()?.requestId ?? newRequestId(),
      traceparent: currentTraceparent(),
      content: JSON.stringify(content),
      recipient: sql<string>`lower(${content.to.address})`,
    })
    .onConflict((conflict) => conflict.constraint('mail_intent_key').doNothing())
    .execute();
}

/** Whether the mail of an event was stored before. */
export async function isStored({ kysely }: Database<NotificationSchema>, crmId: string, eventId: string): Promise<boolean> {
  const row = await kysely.selectFrom('mail').select('id').where('crmId', '=', crmId).where('eventId', '=', eventId).executeTakeFirst();
  return row !== undefined;
}
