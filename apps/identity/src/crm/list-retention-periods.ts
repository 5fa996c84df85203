import type { IdentityDependencies } from '../dependencies.ts';

export interface RetentionPeriod {
  crmId: string;
  anonymiseAfterDays: number;
}

/** Of the CRMs that have one of their own. */
export function listRetentionPeriods({ database }: IdentityDependencies): Promise<RetentionPeriod[]> {
  return database.kysely
    .selectFrom('crm')
    .select(['crmId', 'anonymiseAfterDays'])
    .where('anonymiseAfterDays', 'is not', null)
    .orderBy('crmId')
    .$narrowType<{ anonymiseAfterDays: number }>()
    .execute();
}
