import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { type Selectable, sql } from 'kysely';
import { randomBytes } from 'node:crypto';
import type { UserTable } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { hashToken } from './verification.ts';

export interface IssuedToken {
  token: string;
  expiresAt: Date;
  user: Selectable<UserTable>;
}

const tokenBytes = 32;

/**
 * Creates the secret of a verification mail, valid for 24 hours by the database's clock. An earlier unused one stops
 * working. Rejects with `verification.not_found` when the verification is used or superseded.
 */
export async function issueVerificationToken(
  { database }: IdentityDependencies,
  { crmId, verificationId }: { crmId: string; verificationId: string },
): Promise<IssuedToken> {
  if (!isUuid(verificationId)) throw new DomainError('verification.not_found');
  const token = randomBytes(tokenBytes).toString('base64url');
  const { expiresAt, ...user } = await database.kysely
    .updateTable('emailVerification')
    .from('appUser')
    .set({ tokenHash: hashToken(token), expiresAt: sql<Date>`now() + interval '24 hours'` })
    .where('emailVerification.crmId', '=', crmId)
    .where('emailVerification.id', '=', verificationId)
    .where('emailVerification.usedAt', 'is', null)
    .whereRef('appUser.crmId', '=', 'emailVerification.crmId')
    .whereRef('appUser.id', '=', 'emailVerification.userId')
    .returningAll('appUser')
    .returning('emailVerification.expiresAt')
    .executeTakeFirstOrThrow(() => new DomainError('verification.not_found'));
  return { token, expiresAt: expiresAt!, user };
}
