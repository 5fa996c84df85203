import { type Kysely, sql } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { hashToken, verificationExpired, verificationNotFound, verificationUsed } from './verification.ts';

/** Looks at a link without using it. Rejects with `verification.not_found`, `verification.used` or `verification.expired`. */
export async function getVerification({ database }: IdentityDependencies, token: string): Promise<{ email: string; language: string }> {
  const verification = await selectVerification(database.kysely, token).executeTakeFirstOrThrow(verificationNotFound);
  refuseClosed(verification);
  return verification;
}

export function selectVerification(db: Kysely<IdentitySchema>, token: string) {
  return db
    .selectFrom('email_verification')
    .innerJoin('app_user', (join) =>
      join.onRef('app_user.crm_id', '=', 'email_verification.crm_id').onRef('app_user.id', '=', 'email_verification.user_id'),
    )
    .select(['email_verification.crm_id', 'email_verification.user_id', 'app_user.email', 'app_user.language'])
    .select(sql<boolean>`email_verification.used_at IS NOT NULL`.as('used'))
    .select(sql<boolean>`email_verification.expires_at <= now()`.as('expired'))
    .where('email_verification.token_hash', '=', hashToken(token));
}

export function refuseClosed({ used, expired }: { used: boolean; expired: boolean }): void {
  if (used) throw verificationUsed();
  if (expired) throw verificationExpired();
}
