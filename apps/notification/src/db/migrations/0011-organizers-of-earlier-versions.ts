import { type Kysely, sql } from 'kysely';

export const withoutTransaction = true;

/** Whoever stores a mail waits for the rows of one batch at most. */
const batchSize = 1_000;

interface Key {
  crmId: string;
  participationId: string;
}

/**
 * Whose the organizers are that an earlier version has stored, as far as there is a mail about the participation: those
 * of the last 30 days. The others stay without a provider until the next mail.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  let last: Key | undefined = { crmId: '', participationId: '00000000-0000-0000-0000-000000000000' };
  while (last !== undefined) last = await fillBatch(db, last);
}

/** Returns the last one of the batch. One that is locked is left out: it is deleted, or a mail about it is stored. */
async function fillBatch(db: Kysely<unknown>, after: Key): Promise<Key | undefined> {
  const { rows } = await sql<Key>`
    WITH batch AS (
      SELECT crm_id, participation_id
        FROM event_organizer
       WHERE (crm_id, participation_id) > (${after.crmId}, ${after.participationId}::uuid)
       ORDER BY crm_id, participation_id
       LIMIT ${batchSize}
    ), unknown AS (
      SELECT crm_id, participation_id
        FROM event_organizer JOIN batch USING (crm_id, participation_id)
       WHERE provider_id IS NULL
         FOR UPDATE OF event_organizer SKIP LOCKED
    ), filled AS (
      UPDATE event_organizer AS known
         SET provider_id = mail.provider_id
        FROM unknown CROSS JOIN LATERAL (
          SELECT provider_id FROM mail
           WHERE mail.crm_id = unknown.crm_id AND about_id = unknown.participation_id AND mail.provider_id IS NOT NULL LIMIT 1
        ) AS mail
       WHERE known.crm_id = unknown.crm_id AND known.participation_id = unknown.participation_id
    )
    SELECT crm_id AS "crmId", participation_id AS "participationId" FROM batch ORDER BY crm_id DESC, participation_id DESC LIMIT 1`.execute(
    db,
  );
  return rows[0];
}
