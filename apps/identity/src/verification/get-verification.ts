import { type Kysely, sql } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { hashToken, verificationNotFound } from './verification.ts';

export type VerificationState = 'OPEN' | 'USED' | 'EXPIRED';

/** A verification as the person with its link sees it. */
export interface Verification {
  email: string;
  language: string;
  state: VerificationState;
  userName: string;
  crmName: string;
}

/** Looks at a link without using it. Rejects with `verification.not_found`. */
export async function getVerification({ database }: IdentityDependencies, token: string): Promise<Verification> {
  const row = await selectVerification(database.kysely, token)
    .innerJoin('crm', 'crm.crm_id', 'email_verification.crm_id')
    .select(['app_user.email', 'app_user.first_name', 'app_user.last_name', 'crm.name as crm_name'])
    .executeTakeFirstOrThrow(verificationNotFound);
  return {
    email: row.email,
    language: row.language,
    state: row.state,
    userName: [row.first_name, row.last_name].filter((name) => name !== null).join(' '),
    crmName: row.crm_name ?? row.crm_id,
  };
}

const state = sql<VerificationState>`
  CASE WHEN email_verification.used_at IS NOT NULL THEN 'USED'
       WHEN email_verification.expires_at <= now() THEN 'EXPIRED'
       ELSE 'OPEN' END`;

export function selectVerification(db: Kysely<IdentitySchema>, token: string) {
  return db
    .selectFrom('email_verification')
    .innerJoin('app_user', (join) =>
      join.onRef('app_user.crm_id', '=', 'email_verification.crm_id').onRef('app_user.id', '=', 'email_verification.user_id'),
    )
    .select(['email_verification.crm_id', 'email_verification.user_id', 'app_user.language'])
    .select(state.as('state'))
    .where('email_verification.token_hash', '=', hashToken(token));
}
