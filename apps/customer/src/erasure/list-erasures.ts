import { type Selectable, sql } from 'kysely';
import type { CustomerDependencies } from '../customer/customer.ts';
import { confirmingServices, type ErasureRow } from './erasure.ts';
import type { ErasureConfirmationTable } from '../db/schema.ts';

export interface ListedErasure extends ErasureRow {
  /** The services that have not confirmed yet. */
  awaiting: string[];
}

/** The erasures that are open, and those completed within the last 7 days, oldest first. */
export async function listErasures({ database: { kysely } }: CustomerDependencies): Promise<ListedErasure[]> {
  const erasures = await kysely
    .selectFrom('erasure')
    .selectAll()
    .where(({ eb, or, and }) =>
      or([
        eb('state', '<>', 'complete'),
        and([eb('state', '=', 'complete'), eb('completedAt', '>', sql<Date>`now() - interval '7 days'`)]),
      ]),
    )
    .orderBy('requestedAt')
    .execute();
  const confirmations = await kysely
    .selectFrom('erasureConfirmation')
    .selectAll()
    .where('erasureId', '=', sql<string>`ANY(${erasures.map(({ id }) => id)})`)
    .execute();
  return erasures.map((erasure) => ({ ...erasure, awaiting: awaiting(erasure, confirmations) }));
}

function awaiting(erasure: ErasureRow, confirmations: Selectable<ErasureConfirmationTable>[]): string[] {
  const confirmed = confirmations.filter(({ crmId, erasureId }) => crmId === erasure.crmId && erasureId === erasure.id);
  return confirmingServices.filter((name) => !confirmed.some(({ service }) => service === name));
}
