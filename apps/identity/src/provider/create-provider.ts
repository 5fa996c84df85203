import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { emptyToNull, transactOnce } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import { holdAccount } from '../account/account.ts';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { checkBranch } from '../field/branch.ts';
import { holdUserByReference } from '../user/get-user.ts';
import { requireProvider } from './get-provider.ts';
import { insertStaff } from './insert-staff.ts';
import { checkTimeZone, findProvider, type ProviderRow } from './provider.ts';

export interface CreateProvider {
  crmId: string;
  reference: string;
  ownerReference: string;
  accountReference: string;
  name: string;
  email?: string | undefined;
  mobile?: string | undefined;
  phone?: string | undefined;
  impressum?: string | undefined;
  branch?: string | undefined;
  subbranch?: string | undefined;
  /** IANA name; absent: the CRM's. */
  timeZone?: string | undefined;
}

/**
 * Creates a provider whose owner is its first staff member, or returns the existing one with this reference, unchanged
 * and before anything else is checked, as for accounts. Otherwise rejects with the first of
 * `provider.time_zone_unknown`, `branch.unknown`, `provider.owner_not_found` and `provider.account_not_found`.
 */
export async function createProvider(
  { database }: IdentityDependencies,
  request: CreateProvider,
): Promise<{ provider: ProviderRow; created: boolean }> {
  const { crmId } = request;
  return transactOnce(database, crmId, {
    work: (tx) => createOrFindProvider(tx, request),
    keep: ({ provider, created }) => ({ resourceIds: [provider.id], created }),
    replay: async (tx, { resourceIds, created }) => ({
      provider: await requireProvider(tx, { crmId, id: resourceIds[0]! }),
      created,
    }),
  });
}

async function createOrFindProvider(
  tx: Transaction<IdentitySchema>,
  request: CreateProvider,
): Promise<{ provider: ProviderRow; created: boolean }> {
  for (;;) {
    const known = await findProvider(tx, request);
    if (known !== undefined) return { provider: known, created: false };
    const timeZone = request.timeZone ? checkTimeZone(request.timeZone) : undefined;
    if (request.branch) checkBranch(request.branch);
    // Otherwise a concurrent request created it first. It may have been deleted since.
    if (await insertProvider(tx, { ...request, timeZone }))
      return { provider: await addOwner(tx, request), created: true };
  }
}

async function addOwner(tx: Transaction<IdentitySchema>, request: CreateProvider): Promise<ProviderRow> {
  const provider = await requireProvider(tx, request);
  await insertStaff(tx, provider, provider.ownerId);
  await appendEvent(tx, events.providerChanged, {
    crmId: provider.crmId,
    providerId: provider.id,
    version: provider.version,
  });
  return provider;
}

async function insertProvider(tx: Transaction<IdentitySchema>, request: CreateProvider): Promise<boolean> {
  const { crmId, reference, name, email, mobile, phone, impressum, branch, subbranch } = request;
  const owner = await holdUserByReference(tx, { crmId, reference: request.ownerReference });
  if (owner === undefined) throw new DomainError('provider.owner_not_found');
  const account = await holdAccount(tx, { crmId, reference: request.accountReference });
  if (account === undefined) throw new DomainError('provider.account_not_found');
  const inserted = await tx
    .insertInto('provider')
    .values({
      crmId,
      reference,
      ownerId: owner.id,
      accountId: account.id,
      name,
      ...emptyToNull({ email, mobile, phone, impressum, branch, subbranch }),
      timeZone: request.timeZone ?? (await requireCrm(tx, crmId)).timeZone,
    })
    .onConflict((conflict) => conflict.constraint('provider_reference_key').doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}
