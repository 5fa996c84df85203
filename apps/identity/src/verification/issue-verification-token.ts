import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { sql } from 'kysely';
import { randomBytes } from 'node:crypto';
import type { IdentityDependencies } from '../dependencies.ts';
import type { UserRow } from '../user/user.ts';
import { hashToken } from './verification.ts';

export interface IssuedToken {
  token: string;
  expiresAt: Date;
  user: UserRow;
}

const tokenBytes = 32;

/**
 * Makes the secret of a verification mail, valid for 24 hours by the database's clock. An earlier one that was not used stops working.
 * Rejects with `verification.not_found` when the verification is used or superseded.
 */
export async function issueVerificationToken(
  { database }: IdentityDependencies,
  { crmId, verificationId }: { crmId: string; verificationId: string },
): Promise<IssuedToken> {
  if (!isUuid(verificationId)) throw new DomainError('verification.not_found');
  const token = randomBytes(tokenBytes).toString('base64url');
  const { expires_at, ...user } = await database.kysely
    .updateTable('email_verification')
    .from('app_user')
    .set({ token_hash: hashToken(token), expires_at: sql<Date>`now() + interval '24 hours'` })
    .where('email_verification.crm_id', '=', crmId)
    .where('email_verification.id', '=', verificationId)
    .where('email_verification.used_at', 'is', null)
    .whereRef('app_user.crm_id', '=', 'email_verification.crm_id')
    .whereRef('app_user.id', '=', 'email_verification.user_id')
    .returningAll('app_user')
    .returning('email_verification.expires_at')
    .executeTakeFirstOrThrow(() => new DomainError('verification.not_found'));
  return { token, expiresAt: expires_at!, user };
}
