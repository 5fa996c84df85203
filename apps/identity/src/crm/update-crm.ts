import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent, recordAction } from '@scheduling/messaging';
import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import { crmInvalid, type CrmRow, type CrmSettings, settingColumns, settingErrors } from './crm.ts';

/** Changes the given settings. Rejects with `crm.not_found`, or `crm.invalid` with the invalid fields. */
export async function updateCrm(
  { database }: IdentityDependencies,
  request: CrmSettings & { crmId: string },
): Promise<CrmRow> {
  const errors = settingErrors(request);
  if (errors.length > 0) throw crmInvalid(errors);
  const columns = settingColumns(request);
  const given = Object.entries(columns).filter(([, value]) => value !== undefined);
  return database.transaction(async (tx) => {
    const crm = await tx
      .updateTable('crm')
      .set({ ...columns, updatedAt: sql<Date>`now()` })
      .where('crmId', '=', request.crmId)
      .returningAll()
      .executeTakeFirstOrThrow(() => new DomainError('crm.not_found'));
    await appendEvent(tx, events.crmChanged, { crmId: crm.crmId });
    await recordAction(tx, 'crm.update', crm.crmId, ...given.map(([name]) => name));
    return crm;
  });
}
