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
  crmImprint: string | undefined;
}

/** Reads a link without using it. Rejects with `verification.not_found`. */
export async function getVerification({ database }: IdentityDependencies, token: string): Promise<Verification> {
  return toVerification(
    await selectVerification(database.kysely, token).executeTakeFirstOrThrow(
      () => new DomainError('verification.not_found'),
    ),
  );
}

export function selectVerification(db: Kysely<IdentitySchema>, token: string) {
  return db
    .selectFrom('emailVerification')
    .innerJoin('appUser', (join) =>
      join.onRef('appUser.crmId', '=', 'emailVerification.crmId').onRef('appUser.id', '=', 'emailVerification.userId'),
    )
    .innerJoin('crm', 'crm.crmId', 'emailVerification.crmId')
    .select(['emailVerification.crmId', 'emailVerification.userId'])
    .select([
      'appUser.email',
      'appUser.language',
      'appUser.firstName',
      'appUser.lastName',
      'crm.name as crmName',
      'crm.imprint as crmImprint',
    ])
    .select(
      sql<Verification['state']>`
        CASE WHEN email_verification.used_at IS NOT NULL THEN 'USED'
             WHEN email_verification.expires_at <= now() THEN 'EXPIRED'
             ELSE 'OPEN' END`.as('state'),
    )
    .where('emailVerification.tokenHash', '=', hashToken(token));
}

type SelectedVerification = Awaited<ReturnType<ReturnType<typeof selectVerification>['executeTakeFirstOrThrow']>>;

export function toVerification(row: SelectedVerification): Verification {
  return {
    email: row.email,
    language: row.language,
    state: row.state,
    userName: [row.firstName, row.lastName].filter((name) => name !== null).join(' '),
    crmName: row.crmName ?? row.crmId,
    crmImprint: row.crmImprint ?? undefined,
  };
}
