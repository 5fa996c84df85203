import { DomainError } from '@scheduling/errors';
import { recordAction } from '@scheduling/messaging';
import type { IdentityDependencies } from '../dependencies.ts';
import { crmInvalid, type CrmRow, type CrmSettings, settingColumns, settingErrors } from './crm.ts';

/** It is part of addresses and host names, so it must be a valid DNS label. */
const crmIdSyntax = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Creates a tenant; a sandbox stays one. Rejects with `crm.exists`, or `crm.invalid` with the invalid fields. */
export async function createCrm(
  { database }: IdentityDependencies,
  request: CrmSettings & { crmId: string; sandbox?: boolean | undefined },
): Promise<CrmRow> {
  const errors = settingErrors(request);
  if (!crmIdSyntax.test(request.crmId)) {
    errors.unshift({ pointer: '/crmId', detail: 'must be 1 to 63 lower-case letters, digits and inner hyphens' });
  }
  if (errors.length > 0) throw crmInvalid(errors);
  return database.transaction(async (tx) => {
    const crm = await tx
      .insertInto('crm')
      .values({ crmId: request.crmId, sandbox: request.sandbox, ...settingColumns(request) })
      .onConflict((conflict) => conflict.column('crmId').doNothing())
      .returningAll()
      .executeTakeFirstOrThrow(() => new DomainError('crm.exists'));
    await recordAction(tx, 'crm.create', crm.crmId);
    return crm;
  });
}
