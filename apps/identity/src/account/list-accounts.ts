import type { Kysely } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { type ListedPart, listById, type PageQuery } from '../list-by-id.ts';
import { findUserByReference } from '../user/get-user.ts';
import { type AccountRow, selectAccounts } from './account.ts';

export interface AccountsQuery extends PageQuery {
  crmId: string;
  /** Only accounts of this user; none if there is no such user. */
  ownerReference?: string | undefined;
}

/** The accounts of a CRM in the order of their creation. Rejects with `account.invalid` for an invalid cursor. */
export async function* listAccounts(
  { database: { kysely } }: IdentityDependencies,
  { crmId, ownerReference: reference, ...page }: AccountsQuery,
  signal: AbortSignal,
): AsyncGenerator<ListedPart<AccountRow>> {
  const owner = reference === undefined ? undefined : await findUserByReference(kysely, { crmId, reference });
  const isNobodys = reference !== undefined && owner === undefined;
  yield* listById(
    page,
    'account.invalid',
    async (after, count) =>
      isNobodys ? [] : selectAccountPart(kysely, { crmId, ownerId: owner?.id, after, count }).execute(),
    signal,
  );
}

interface AccountPart {
  crmId: string;
  /** Undefined: anybody. */
  ownerId: string | undefined;
  after: string;
  count: number;
}

export function selectAccountPart(db: Kysely<IdentitySchema>, { crmId, ownerId, after, count }: AccountPart) {
  return selectAccounts(db, crmId)
    .where('account.id', '>', after)
    .$if(ownerId !== undefined, (query) => query.where('account.ownerId', '=', ownerId!))
    .orderBy('account.id')
    .limit(count);
}
