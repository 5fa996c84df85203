import { requireCrm } from '../crm/get-crm.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import type { ApiKeyRow } from './api-key.ts';

/** The keys of a CRM, newest first. Rejects with `crm.not_found`. */
export async function listKeys({ database }: IdentityDependencies, crmId: string): Promise<ApiKeyRow[]> {
  await requireCrm(database.kysely, crmId);
  // A version 7 uuid begins with its creation time.
  return database.kysely.selectFrom('apiKey').selectAll().where('crmId', '=', crmId).orderBy('id', 'desc').execute();
}
