import { DomainError } from '@scheduling/errors';
import { type Kysely, sql } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { hashToken } from './verification.ts';

/** A verification as the person with its link sees it. */
export interface Verification {
  email: string;
  language: string;
  state: 'OPEN' | 'USED' | 'EXPIRED';
  userName: string;
  crmName: string;
}

/** Looks at a link without using it. Rejects with `verification.not_found`. */
export async function getVerification({ database }: IdentityDependencies, token: string): Promise<Verification> {
  return toVerification(await selectVerification(database.kysely, token).executeTakeFirstOrThrow(() => new DomainError('verification.not_found')));
}

export function selectVerification(db: Kysely<IdentitySchema>, token: string) {
  return db
    .selectFrom('email_verification')
    .innerJoin('app_user', (join) =>
      join.onRef('app_user.crm_id', '=', 'email_verification.crm_id').onRef('app_user.id', '=', 'email_verification.user_id'),
    )
    .innerJoin('crm', 'crm.crm_id', 'email_verification.crm_id')
    .select(['email_verification.crm_id', 'email_verification.user_id'])
    .select(['app_user.email', 'app_user.language', 'app_user.first_name', 'app_user.last_name', 'crm.name as crm_name'])
    .select(
      sql<Verification['state']>`
        CASE WHEN email_verification.used_at IS NOT NULL THEN 'USED'
             WHEN email_verification.expires_at <= now() THEN 'EXPIRED'
             ELSE 'OPEN' END`.as('state'),
    )
    .where('email_verification.token_hash', '=', hashToken(token));
}

type SelectedVerification = Awaited<ReturnType<ReturnType<typeof selectVerification>['executeTakeFirstOrThrow']>>;

export function toVerification(row: SelectedVerification): Verification {
  return {
    email: row.email,
    language: row.language,
    state: row.state,
    userName: [row.first_name, row.last_name].filter((name) => name !== null).join(' '),
    crmName: row.crm_name ?? row.crm_id,
  };
}
