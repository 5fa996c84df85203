import { sql, type Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

/** An appointment's digest covers its embedded participants too; once it is cleared, a retry of the creation is rejected because the reference is taken. */
export async function forgetContents(tx: Transaction<CalendarSchema>, crmId: string, appointmentIds: string[]): Promise<void> {
  await tx
    .updateTable('appointment')
    .set({ contentDigest: Buffer.alloc(0) })
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${appointmentIds}::uuid[])`)
    .execute();
}
