import { sql, type Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

/** The reference of a participation that leads to nobody any more; in the expressions `id` is its id. */
export const anonymousReference = sql<string>`'anonymous-' || id::text`;

/**
 * What remains shows that there was a participant, but not who: no customer, no contact data, no reference, no message,
 * and not when and where it was before.
 */
export async function anonymiseParticipations(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  ids: string[],
): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .deleteFrom('participationMessage')
    .where('crmId', '=', crmId)
    .where(sql<boolean>`participation_id = ANY(${ids}::uuid[])`)
    .execute();
  await tx
    .deleteFrom('participationPrevious')
    .where('crmId', '=', crmId)
    .where(sql<boolean>`participation_id = ANY(${ids}::uuid[])`)
    .execute();
  await forgetInvitations(tx, crmId, ids);
  await tx
    .updateTable('participation')
    // A trigger removes what the CRM has noted.
    .set({ customerId: null, reference: anonymousReference, name: null, email: null, mobile: null, note: null })
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
    .execute();
}

/** An invitation leads to its customer. It goes on counting what stands of its bookings. */
async function forgetInvitations(tx: Transaction<CalendarSchema>, crmId: string, ids: string[]): Promise<void> {
  await sql`
    WITH gone AS (
      DELETE FROM invitation_booking AS booking USING participation
       WHERE booking.crm_id = ${crmId} AND booking.participation_id = ANY(${ids}::uuid[])
         AND participation.crm_id = booking.crm_id AND participation.id = booking.participation_id
      RETURNING booking.invitation_id, participation.state)
    UPDATE invitation SET anonymised = anonymised + standing.count
      FROM (SELECT invitation_id, count(*) FROM gone WHERE state IN ('REQUESTED', 'BOOKED') GROUP BY invitation_id) AS standing
     WHERE invitation.crm_id = ${crmId} AND invitation.id = standing.invitation_id`.execute(tx);
}
