import type { Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { UserRow } from '../user/user.ts';

/** Takes back what a user has confirmed, makes earlier links unknown, and returns the id of a new verification. */
export async function restartVerification(tx: Transaction<IdentitySchema>, user: UserRow): Promise<string> {
  // Verification before user, as when a link is used.
  await tx.deleteFrom('email_verification').where('crm_id', '=', user.crm_id).where('user_id', '=', user.id).execute();
  const { id } = await tx
    .insertInto('email_verification')
    .values({ crm_id: user.crm_id, user_id: user.id })
    .returning('id')
    .executeTakeFirstOrThrow();
  await tx
    .updateTable('app_user')
    .set({ email_verified_at: null })
    .where('crm_id', '=', user.crm_id)
    .where('id', '=', user.id)
    .execute();
  return id;
}
