import type { IdentityDependencies } from '../dependencies.ts';
import { type AccountRow, requireAccount } from './account.ts';

/** Rejects with `account.not_found`, also for an account of another CRM. */
export function getAccount(
  { database }: IdentityDependencies,
  key: { crmId: string; reference: string },
): Promise<AccountRow> {
  return requireAccount(database.kysely, key);
}
