import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { IdentitySchema, UserTable } from '../db/schema.ts';
import { countMailTo } from './count-mail-to.ts';
import { recentOf, waitSeconds } from './mail-limit.ts';

type UserId = Pick<Selectable<UserTable>, 'crmId' | 'id'>;

const requests = sql.ref('email_verification.requested_at');

/**
 * Replaces a user's earlier verification, whose link becomes unknown, and requests the mail to the address. Of
 * concurrent calls only one succeeds, and of a call and a confirmation the first: the verification's row lock decides.
 * Rejects with `user.email_verified` or `verification.limited`.
 */
export async function startVerification(tx: Transaction<IdentitySchema>, user: UserId, address: string): Promise<void> {
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
          requestedAt: sql<Date[]>`array_append(${recentOf(requests)}, now())`,
          createdAt: sql<Date>`now()`,
        }))
        .where('emailVerification.usedAt', 'is', null)
        .where(sql<boolean>`${waitSeconds(requests)} <= 0`),
    )
    .returning('id')
    .executeTakeFirst();
  if (started === undefined) return refuse(tx, user);
  await countMailTo(tx, user.crmId, address);
  await appendEvent(tx, events.emailVerificationRequested, { crmId: user.crmId, verificationId: started.id });
}

/**
 * The same for an address that the person has not confirmed, whether or not an earlier one was: the user's address is
 * not verified any more. The verification is locked before the user, as when a link is used.
 */
export async function verifyNewAddress(tx: Transaction<IdentitySchema>, user: UserId, address: string): Promise<void> {
  const { crmId, id } = user;
  await tx
    .updateTable('emailVerification')
    .set({ usedAt: null })
    .where('crmId', '=', crmId)
    .where('userId', '=', id)
    .execute();
  await startVerification(tx, user, address);
  await tx
    .updateTable('appUser')
    .set({ emailVerifiedAt: null })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .execute();
}

/** The statement that found the conflicting row has locked it, so this reads the same row. */
async function refuse(tx: Transaction<IdentitySchema>, user: UserId): Promise<never> {
  const { used, retryAfterSeconds } = await tx
    .selectFrom('emailVerification')
    .select([sql<boolean>`used_at IS NOT NULL`.as('used'), waitSeconds(requests).as('retryAfterSeconds')])
    .where('crmId', '=', user.crmId)
    .where('userId', '=', user.id)
    .executeTakeFirstOrThrow();
  throw used ? new DomainError('user.email_verified') : new DomainError('verification.limited', { retryAfterSeconds });
}
