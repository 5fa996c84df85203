import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { sql, type Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { UserRow } from '../user/user.ts';

/** Mails to one user in 24 hours. Enough for the user to receive one, too few to flood a mailbox. */
const maxMailsPerDay = 5;

const recentRequests = sql`unnest(email_verification.requested_at) AS request WHERE request > now() - interval '24 hours'`;

/** Until the user may get another mail: at most one a minute. Null or not positive: now. */
const waitSeconds = sql<number | null>`(
  SELECT ceil(extract(epoch FROM greatest(
           max(request) + interval '1 minute',
           CASE WHEN count(*) >= ${maxMailsPerDay} THEN min(request) + interval '24 hours' END) - now()))::integer
    FROM ${recentRequests})`;

/**
 * Replaces a user's earlier verification, whose link becomes unknown, and requests the mail. Of concurrent calls only one succeeds, and of a
 * call and a confirmation the first: the verification's row lock decides. Rejects with `user.email_verified` or `verification.limited`.
 */
export async function startVerification(tx: Transaction<IdentitySchema>, user: UserRow): Promise<void> {
  const started = await tx
    .insertInto('emailVerification')
    .values({ crmId: user.crmId, userId: user.id, requestedAt: sql<Date[]>`ARRAY[now()]` })
    .onConflict((conflict) =>
      conflict
        .columns(['crmId', 'userId'])
        .doUpdateSet((row) => ({
          id: row.ref('excluded.id'),
          tokenHash: null,
          expiresAt: null,
          requestedAt: sql<Date[]>`array_append(ARRAY(SELECT request FROM ${recentRequests}), now())`,
          createdAt: sql<Date>`now()`,
        }))
        .where('emailVerification.usedAt', 'is', null)
        .where(sql<boolean>`coalesce(${waitSeconds}, 0) <= 0`),
    )
    .returning('id')
    .executeTakeFirst();
  if (started === undefined) return refuse(tx, user);
  await appendEvent(tx, events.emailVerificationRequested, { crmId: user.crmId, verificationId: started.id });
}

/**
 * The same for an address that the person has not confirmed, whether or not an earlier one was: the user's address is not verified any more. The
 * verification is locked before the user, as when a link is used.
 */
export async function verifyNewAddress(tx: Transaction<IdentitySchema>, user: UserRow): Promise<void> {
  const { crmId, id } = user;
  await tx.updateTable('emailVerification').set({ usedAt: null }).where('crmId', '=', crmId).where('userId', '=', id).execute();
  await startVerification(tx, user);
  await tx.updateTable('appUser').set({ emailVerifiedAt: null }).where('crmId', '=', crmId).where('id', '=', id).execute();
}

/** The statement that found the conflicting row has locked it, so this reads the same row. */
async function refuse(tx: Transaction<IdentitySchema>, user: UserRow): Promise<never> {
  const { used, retryAfterSeconds } = await tx
    .selectFrom('emailVerification')
    .select([sql<boolean>`used_at IS NOT NULL`.as('used'), waitSeconds.as('retryAfterSeconds')])
    .where('crmId', '=', user.crmId)
    .where('userId', '=', user.id)
    .executeTakeFirstOrThrow();
  throw used ? new DomainError('user.email_verified') : new DomainError('verification.limited', { retryAfterSeconds: retryAfterSeconds ?? 1 });
}
