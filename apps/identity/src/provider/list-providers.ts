import type { Kysely } from 'kysely';
import { findAccount } from '../account/account.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { type ListedPart, listById, type PageQuery } from '../list-by-id.ts';
import { findUserByReference } from '../user/get-user.ts';
import { type ProviderRow, selectProviders } from './provider.ts';

export interface ProvidersQuery extends PageQuery {
  crmId: string;
  /** Only providers of this user; none if there is no such user. */
  ownerReference?: string | undefined;
  /** Only providers of this account; none if there is no such account. */
  accountReference?: string | undefined;
}

/** The providers of a CRM in the order of their creation. Rejects with `provider.invalid` for an invalid cursor. */
export async function* listProviders(
  { database: { kysely } }: IdentityDependencies,
  { crmId, ownerReference, accountReference, ...page }: ProvidersQuery,
  signal: AbortSignal,
): AsyncGenerator<ListedPart<ProviderRow>> {
  const [owner, account] = await Promise.all([
    ownerReference === undefined ? undefined : findUserByReference(kysely, { crmId, reference: ownerReference }),
    accountReference === undefined ? undefined : findAccount(kysely, { crmId, reference: accountReference }),
  ]);
  const isNobodys =
    (ownerReference !== undefined && owner === undefined) || (accountReference !== undefined && account === undefined);
  yield* listById(
    page,
    'provider.invalid',
    async (after, count) =>
      isNobodys
        ? []
        : selectProviderPart(kysely, { crmId, ownerId: owner?.id, accountId: account?.id, after, count }).execute(),
    signal,
  );
}

interface ProviderPart {
  crmId: string;
  /** Undefined: anybody. */
  ownerId: string | undefined;
  /** Undefined: any. */
  accountId: string | undefined;
  after: string;
  count: number;
}

export function selectProviderPart(
  db: Kysely<IdentitySchema>,
  { crmId, ownerId, accountId, after, count }: ProviderPart,
) {
  return selectProviders(db, crmId)
    .where('provider.id', '>', after)
    .$if(ownerId !== undefined, (query) => query.where('provider.ownerId', '=', ownerId!))
    .$if(accountId !== undefined, (query) => query.where('provider.accountId', '=', accountId!))
    .orderBy('provider.id')
    .limit(count);
}
