import { type Kysely, sql } from 'kysely';

export const withoutTransaction = true;

const batchSize = 5_000;

/**
 * Somebody who was embedded in an appointment, and confirmed for a customer, kept the data with which they were embedded, where no erasure found them. The digests of
 * the requests that embedded them go, too.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  let after = { crm: '', id: '00000000-0000-0000-0000-000000000000' };
  for (let seen = batchSize; seen === batchSize;) {
    const { rows } = await sql<{ crm: string; id: string }>`
      SELECT crm_id AS crm, id FROM participation WHERE (crm_id, id) > (${after.crm}, ${after.id}::uuid) ORDER BY crm_id, id LIMIT ${batchSize}`.execute(
      db,
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    await sql`
      WITH cleared AS (
        UPDATE participation SET name = NULL, email = NULL, mobile = NULL, note = NULL
         WHERE (crm_id, id) > (${after.crm}, ${after.id}::uuid) AND (crm_id, id) <= (${last.crm}, ${last.id}::uuid)
           AND customer_id IS NOT NULL AND num_nonnulls(name, email, mobile, note) > 0
        RETURNING crm_id, appointment_id
      ), forgotten AS (
        DELETE FROM idempotency_key USING cleared
         WHERE idempotency_key.crm_id = cleared.crm_id AND resource_ids @> ARRAY[cleared.appointment_id]
      )
      UPDATE appointment SET content_digest = '' FROM cleared WHERE appointment.crm_id = cleared.crm_id AND appointment.id = cleared.appointment_id`.execute(
      db,
    );
    [after, seen] = [last, rows.length];
  }
}
