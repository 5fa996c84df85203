import type { Kysely } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { type ListedPart, listById, type PageQuery } from '../list-by-id.ts';
import { hasEmail } from './login-names.ts';
import type { UserRow } from './user.ts';

export interface UsersQuery extends PageQuery {
  crmId: string;
  /** Only the user with this address, in any of its forms. */
  email?: string | undefined;
}

/**
 * The users of a CRM, also invited ones without a reference, in the order of their creation. Rejects with
 * `user.invalid` for an invalid cursor.
 */
export async function* listUsers(
  { database: { kysely } }: IdentityDependencies,
  { crmId, email, ...page }: UsersQuery,
  signal: AbortSignal,
): AsyncGenerator<ListedPart<UserRow>> {
  // What the same address is depends on the CRM.
  const address = email === undefined ? undefined : { crm: await requireCrm(kysely, crmId), email };
  yield* listById(
    page,
    'user.invalid',
    (after, count) => selectUserPart(kysely, { crmId, address, after, count }).execute(),
    signal,
  );
}

interface UserPart {
  crmId: string;
  /** Undefined: any. */
  address: { crm: CrmRow; email: string } | undefined;
  after: string;
  count: number;
}

export function selectUserPart(db: Kysely<IdentitySchema>, { crmId, address, after, count }: UserPart) {
  return db
    .selectFrom('appUser')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '>', after)
    .$if(address !== undefined, (query) => query.where(hasEmail(address!.crm, address!.email)))
    .orderBy('id')
    .limit(count);
}
