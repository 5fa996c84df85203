import { DomainError } from '@scheduling/errors';
import type { Kysely } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import type { CrmRow } from './crm.ts';

/** Rejects with `crm.not_found`. */
export function getCrm({ database }: IdentityDependencies, crmId: string): Promise<CrmRow> {
  return requireCrm(database.kysely, crmId);
}

export function listCrms({ database }: IdentityDependencies): Promise<CrmRow[]> {
  return database.kysely.selectFrom('crm').selectAll().orderBy('crmId').execute();
}

export function requireCrm(db: Kysely<IdentitySchema>, crmId: string): Promise<CrmRow> {
  return db
    .selectFrom('crm')
    .selectAll()
    .where('crmId', '=', crmId)
    .executeTakeFirstOrThrow(() => new DomainError('crm.not_found'));
}
