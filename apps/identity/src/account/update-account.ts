import { DomainError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { IdentitySchema, InvoiceAddress } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { checkBranch } from '../field/branch.ts';
import { type AccountRow, requireAccount } from './account.ts';

/** Absent keeps the value, empty clears it. */
export interface AccountUpdate {
  crmId: string;
  reference: string;
  branch?: string | undefined;
  /** Cleared by an address whose texts are all empty. */
  invoiceAddress?: InvoiceAddress | undefined;
  invoiceContactName?: string | undefined;
  invoiceCompanyName?: string | undefined;
  invoiceTaxId?: string | undefined;
  email?: string | undefined;
}

/** Changes the given fields (interface 4.6). Rejects with the first of `branch.unknown` and `account.not_found`. */
export async function updateAccount({ database }: IdentityDependencies, request: AccountUpdate): Promise<AccountRow> {
  if (request.branch !== undefined) checkBranch(request.branch);
  return database.transaction(async (tx) => {
    await writeChanges(tx, request);
    return requireAccount(tx, request);
  });
}

async function writeChanges(tx: Transaction<IdentitySchema>, request: AccountUpdate): Promise<void> {
  const { crmId, reference, branch, invoiceAddress, invoiceContactName, invoiceCompanyName, invoiceTaxId, email } =
    request;
  await tx
    .updateTable('account')
    // The reference stays; it is set so that a request without changes is a valid statement, too.
    .set({
      reference,
      branch,
      invoiceAddress: toColumn(invoiceAddress),
      ...emptyToNull({ invoiceContactName, invoiceCompanyName, invoiceTaxId, email }),
    })
    .where('crmId', '=', crmId)
    .where('reference', '=', reference)
    .returning('id')
    .executeTakeFirstOrThrow(() => new DomainError('account.not_found'));
}

function toColumn(address: InvoiceAddress | undefined): string | null | undefined {
  if (address === undefined) return undefined;
  return Object.values(address).every((text) => text === '') ? null : JSON.stringify(address);
}
