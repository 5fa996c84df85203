import { isAddress } from '@scheduling/postgres';
import { providerMailTemplates } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { recipientDigest } from '../mail/check-quotas.ts';
import { recordAddressErasure } from './address-erasures.ts';
import { deleteMails } from './delete-mails.ts';

/**
 * Deletes the mails that wait for an address, in any of its forms, those that a sandbox keeps, and the digests of sent
 * ones, except those to users and providers of the CRM and the last mails to deleted customers, which end on their own.
 * Returns whether a mail to the address is being sent: then it is to be repeated.
 */
export async function eraseMailsTo(
  tx: Transaction<NotificationSchema>,
  crmId: string,
  email: string,
): Promise<boolean> {
  await recordAddressErasure(tx, crmId);
  const waiting = tx
    .selectFrom('mail')
    .where('state', '=', 'pending')
    .where('userId', 'is', null)
    .where('template', 'not in', providerMailTemplates)
    .where(isAddress(sql`recipient`, email));
  const isSending = await deleteMails(tx, crmId, waiting);
  await tx
    .deleteFrom('sandboxMail')
    .using('mail')
    .whereRef('mail.crmId', '=', 'sandboxMail.crmId')
    .whereRef('mail.id', '=', 'sandboxMail.mailId')
    .where('sandboxMail.crmId', '=', crmId)
    .where('mail.userId', 'is', null)
    .where('mail.template', 'not in', providerMailTemplates)
    .where(isAddress(sql`sandbox_mail.recipient`, email))
    .execute();
  const { rows } = await sql<{ recipient: string }>`SELECT address_key(${email}) AS recipient`.execute(tx);
  await tx
    .deleteFrom('recentMail')
    .where('crmId', '=', crmId)
    .where('recipientDigest', '=', recipientDigest({ crmId, recipient: rows[0]!.recipient }))
    .execute();
  return isSending;
}
