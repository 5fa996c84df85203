import { DomainError } from '@scheduling/errors';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

/**
 * How many times addresses of a CRM have been erased: what is read of a person after this is still there, or was erased
 * later.
 */
export async function countAddressErasures(db: Kysely<NotificationSchema>, crmId: string): Promise<number> {
  const row = await db.selectFrom('addressErasure').select('erasures').where('crmId', '=', crmId).executeTakeFirst();
  return row?.erasures ?? 0;
}

/** Erasing an address and storing a mail to one exclude each other until the transaction ends. */
export async function recordAddressErasure(tx: Transaction<NotificationSchema>, crmId: string): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`addresses ${crmId}`}, 0))`.execute(tx);
  await tx
    .insertInto('addressErasure')
    .values({ crmId, erasures: 1 })
    .onConflict((conflict) =>
      conflict.column('crmId').doUpdateSet({ erasures: sql<number>`address_erasure.erasures + 1` }),
    )
    .execute();
}

/** Rejects if an address was erased since they were counted, perhaps that of the mail: then it is to be written again. */
export async function requireNoAddressErasure(
  tx: Transaction<NotificationSchema>,
  crmId: string,
  counted: number,
): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock_shared(hashtextextended(${`addresses ${crmId}`}, 0))`.execute(tx);
  if ((await countAddressErasures(tx, crmId)) === counted) return;
  throw new DomainError('service.unavailable', { text: 'an address was erased while the mail was written' });
}
