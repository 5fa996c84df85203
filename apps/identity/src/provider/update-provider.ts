import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { emptyToNull } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { checkBranch } from '../field/branch.ts';
import { requireProvider } from './get-provider.ts';
import { checkTimeZone, type ProviderRow } from './provider.ts';

/** Absent keeps the value, empty clears it. */
export interface ProviderUpdate {
  crmId: string;
  reference: string;
  name?: string | undefined;
  email?: string | undefined;
  mobile?: string | undefined;
  phone?: string | undefined;
  impressum?: string | undefined;
  branch?: string | undefined;
  subbranch?: string | undefined;
  /** IANA name; empty: the CRM's. */
  timeZone?: string | undefined;
}

/**
 * Changes the given fields (interface 4.7), and publishes the new version, so that other services replace their copies.
 * Rejects with the first of `provider.time_zone_unknown`, `branch.unknown` and `provider.not_found`.
 */
export async function updateProvider(
  { database }: IdentityDependencies,
  request: ProviderUpdate,
): Promise<ProviderRow> {
  const timeZone = request.timeZone && checkTimeZone(request.timeZone);
  if (request.branch) checkBranch(request.branch);
  return database.transaction(async (tx) => {
    await writeChanges(tx, { ...request, timeZone });
    const provider = await requireProvider(tx, request);
    await appendEvent(tx, events.providerChanged, {
      crmId: provider.crmId,
      providerId: provider.id,
      version: provider.version,
    });
    return provider;
  });
}

async function writeChanges(tx: Transaction<IdentitySchema>, request: ProviderUpdate): Promise<void> {
  const { crmId, reference, name, email, mobile, phone, impressum, branch, subbranch } = request;
  const timeZone = request.timeZone === '' ? (await requireCrm(tx, crmId)).timeZone : request.timeZone;
  await tx
    .updateTable('provider')
    .set({
      name,
      ...emptyToNull({ email, mobile, phone, impressum, branch, subbranch }),
      timeZone,
      version: sql<number>`version + 1`,
    })
    .where('crmId', '=', crmId)
    .where('reference', '=', reference)
    .returning('id')
    .executeTakeFirstOrThrow(() => new DomainError('provider.not_found'));
}
