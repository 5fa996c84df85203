import { type Kysely, sql } from 'kysely';

export const withoutTransaction = true;

const batchSize = 5_000;

/**
 * Somebody who was embedded in an appointment, and confirmed for a customer, kept the name, address and number with which they were embedded, where no erasure
 * found them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  let after = { crm: '', id: '00000000-0000-0000-0000-000000000000' };
  for (let seen = batchSize; seen === batchSize; ) {
    const { rows } = await sql<{ crm: string; id: string }>`
      SELECT crm_id AS crm, id FROM participation WHERE (crm_id, id) > (${after.crm}, ${after.id}::uuid) ORDER BY crm_id, id LIMIT ${batchSize}`.execute(db);
    const last = rows.at(-1);
    if (last === undefined) return;
    await sql`
      UPDATE participation SET name = NULL, email = NULL, mobile = NULL
       WHERE (crm_id, id) > (${after.crm}, ${after.id}::uuid) AND (crm_id, id) <= (${last.crm}, ${last.id}::uuid)
         AND customer_id IS NOT NULL AND (name IS NOT NULL OR email IS NOT NULL OR mobile IS NOT NULL)`.execute(db);
    [after, seen] = [last, rows.length];
  }
}
