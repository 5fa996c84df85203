import { DomainError } from '@scheduling/errors';
import { emptyToNull, transactOnce } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { IdentitySchema, InvoiceAddress } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { checkBranch } from '../field/branch.ts';
import { holdUserByReference } from '../user/get-user.ts';
import { type AccountRow, findAccount, requireAccount } from './account.ts';

export interface CreateAccount {
  crmId: string;
  accountReference: string;
  ownerReference: string;
  branch: string;
  invoiceAddress?: InvoiceAddress | undefined;
  invoiceContactName?: string | undefined;
  invoiceCompanyName?: string | undefined;
  invoiceTaxId?: string | undefined;
  email?: string | undefined;
}

/**
 * Creates an account, or returns the existing one with this reference, unchanged (interface 4.6). A known reference is
 * returned before branch and owner are checked: they have no effect then, so they cannot be wrong. Otherwise rejects
 * with the first of `branch.unknown` and `account.owner_not_found`, with the wording of interface part 7.
 */
export async function createAccount(
  { database }: IdentityDependencies,
  request: CreateAccount,
): Promise<{ account: AccountRow; created: boolean }> {
  const { crmId } = request;
  return transactOnce(database, crmId, {
    work: (tx) => createOrFindAccount(tx, request),
    keep: ({ account, created }) => ({ resourceIds: [account.id], created }),
    replay: async (tx, { resourceIds, created }) => ({
      account: await requireAccount(tx, { crmId, id: resourceIds[0]! }),
      created,
    }),
  });
}

async function createOrFindAccount(
  tx: Transaction<IdentitySchema>,
  request: CreateAccount,
): Promise<{ account: AccountRow; created: boolean }> {
  const { crmId, accountReference: reference } = request;
  for (;;) {
    const known = await findAccount(tx, { crmId, reference });
    if (known !== undefined) return { account: known, created: false };
    checkBranch(request.branch);
    const owner = await holdUserByReference(tx, { crmId, reference: request.ownerReference });
    if (owner === undefined) throw new DomainError('account.owner_not_found');
    // Otherwise a concurrent request created it first. It may have been deleted since.
    if (await insertAccount(tx, owner.id, request))
      return { account: await requireAccount(tx, { crmId, reference }), created: true };
  }
}

async function insertAccount(
  tx: Transaction<IdentitySchema>,
  ownerId: string,
  request: CreateAccount,
): Promise<boolean> {
  const {
    crmId,
    accountReference: reference,
    branch,
    invoiceAddress,
    invoiceContactName,
    invoiceCompanyName,
    invoiceTaxId,
    email,
  } = request;
  const inserted = await tx
    .insertInto('account')
    .values({
      crmId,
      reference,
      ownerId,
      branch,
      invoiceAddress: invoiceAddress && JSON.stringify(invoiceAddress),
      ...emptyToNull({ invoiceContactName, invoiceCompanyName, invoiceTaxId, email }),
    })
    .onConflict((conflict) => conflict.constraint('account_reference_key').doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}
