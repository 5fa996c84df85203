import { DomainError } from '@scheduling/errors';
import { addressKey } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import { createHash } from 'node:crypto';
import type { IdentitySchema } from '../db/schema.ts';
import { countedFor, recentOf, waitSeconds } from './mail-limit.ts';

const requests = sql.ref('verification_mailbox.requested_at');

/**
 * Counts a verification mail of a CRM to a mailbox, whichever users have its address, and whether or not they still
 * exist. Of concurrent calls only one succeeds. Rejects with `verification.limited`.
 */
export async function countMailTo(tx: Transaction<IdentitySchema>, crmId: string, address: string): Promise<void> {
  const addressDigest = mailboxDigest(crmId, address);
  const counted = await tx
    .insertInto('verificationMailbox')
    .values({
      crmId,
      addressDigest,
      requestedAt: sql<Date[]>`ARRAY[now()]`,
      expiresAt: sql<Date>`now() + ${countedFor}::interval`,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['crmId', 'addressDigest'])
        .doUpdateSet((row) => ({
          requestedAt: sql<Date[]>`array_append(${recentOf(requests)}, now())`,
          expiresAt: row.ref('excluded.expiresAt'),
        }))
        .where(sql<boolean>`${waitSeconds(requests)} <= 0`),
    )
    .returning('crmId')
    .executeTakeFirst();
  if (counted !== undefined) return;
  // The statement has locked the row, so this reads the same one.
  const { retryAfterSeconds } = await tx
    .selectFrom('verificationMailbox')
    .select(waitSeconds(requests).as('retryAfterSeconds'))
    .where('crmId', '=', crmId)
    .where('addressDigest', '=', addressDigest)
    .executeTakeFirstOrThrow();
  throw new DomainError('verification.limited', { retryAfterSeconds });
}

/**
 * Identifies a mailbox among those of a CRM, so that the same person cannot be recognised in two of them. Still
 * personal data. What follows a `+` in the local part is a detail of the same mailbox with most mail servers (RFC
 * 5233).
 */
function mailboxDigest(crmId: string, address: string): Buffer {
  const mailbox = addressKey(address).replace(/^([^@]+?)\+[^@]*@/, '$1@');
  return createHash('sha256').update(`${crmId} ${mailbox}`).digest();
}
