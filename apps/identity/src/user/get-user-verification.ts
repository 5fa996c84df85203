import { DomainError } from '@scheduling/errors';
import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import type { UserReference } from './get-user.ts';

/** The verification of a user's address, as the CRM sees it. */
export interface UserVerification {
  email: string;
  verified: boolean;
  /** When the last mail was requested. */
  sentAt: Date | undefined;
  /**
   * Until when the link of that mail works. Undefined if it does not, because it was used or has expired, or if the
   * mail has not been written yet.
   */
  expiresAt: Date | undefined;
}

/** Rejects with `user.not_found`, also for a user of another CRM. */
export async function getUserVerification(
  { database }: IdentityDependencies,
  { crmId, reference }: UserReference,
): Promise<UserVerification> {
  const { sentAt, expiresAt, ...verification } = await database.kysely
    .selectFrom('appUser')
    .leftJoin('emailVerification', (join) =>
      join.onRef('emailVerification.crmId', '=', 'appUser.crmId').onRef('emailVerification.userId', '=', 'appUser.id'),
    )
    .select(['appUser.email', 'emailVerification.createdAt as sentAt'])
    .select(sql<boolean>`app_user.email_verified_at IS NOT NULL`.as('verified'))
    .select(
      sql<Date | null>`CASE WHEN email_verification.used_at IS NULL AND email_verification.expires_at > now() THEN email_verification.expires_at END`.as(
        'expiresAt',
      ),
    )
    .where('appUser.crmId', '=', crmId)
    .where('appUser.reference', '=', reference)
    .executeTakeFirstOrThrow(() => new DomainError('user.not_found'));
  return { ...verification, sentAt: sentAt ?? undefined, expiresAt: expiresAt ?? undefined };
}
