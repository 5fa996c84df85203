import { DomainError } from '@scheduling/errors';
import type { Kysely, Selectable, Transaction } from 'kysely';
import type { AccountTable, IdentitySchema } from '../db/schema.ts';

/** With the reference of its owner, who always has one: only users with a reference become owners. */
export type AccountRow = Selectable<AccountTable> & { ownerReference: string };

export type AccountKey = { crmId: string } & ({ reference: string } | { id: string });

export function findAccount(db: Kysely<IdentitySchema>, key: AccountKey): Promise<AccountRow | undefined> {
  const query = selectAccounts(db, key.crmId);
  return 'id' in key
    ? query.where('account.id', '=', key.id).executeTakeFirst()
    : query.where('account.reference', '=', key.reference).executeTakeFirst();
}

/** The same, for what will refer to the account: until the end of the transaction nobody can delete the account. */
export function holdAccount(
  tx: Transaction<IdentitySchema>,
  { crmId, reference }: { crmId: string; reference: string },
): Promise<AccountRow | undefined> {
  return selectAccounts(tx, crmId).where('account.reference', '=', reference).forKeyShare('account').executeTakeFirst();
}

/** Rejects with `account.not_found`. */
export async function requireAccount(db: Kysely<IdentitySchema>, key: AccountKey): Promise<AccountRow> {
  const account = await findAccount(db, key);
  if (account === undefined) throw new DomainError('account.not_found');
  return account;
}

/** Those of a CRM. */
export function selectAccounts(db: Kysely<IdentitySchema>, crmId: string) {
  return db
    .selectFrom('account')
    .innerJoin('appUser', (join) =>
      join.onRef('appUser.crmId', '=', 'account.crmId').onRef('appUser.id', '=', 'account.ownerId'),
    )
    .selectAll('account')
    .select((select) => select.ref('appUser.reference').$notNull().as('ownerReference'))
    .where('account.crmId', '=', crmId);
}
