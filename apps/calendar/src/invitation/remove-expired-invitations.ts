import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';

/**
 * Removes invitations that expired 30 days ago, by the clock of their CRM and by the real one: a sandbox may have been
 * set ahead, and be behind now. Returns how many.
 */
export async function removeExpiredInvitations(
  { kysely }: CalendarDependencies['database'],
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM invitation USING (
      SELECT crm_id, id FROM invitation
       WHERE expires_at < clock_timestamp() - interval '30 days' AND expires_at < scheduling_now(crm_id) - interval '30 days'
       ORDER BY expires_at LIMIT ${limit}) AS expired
     WHERE invitation.crm_id = expired.crm_id AND invitation.id = expired.id`.execute(kysely);
  return Number(numAffectedRows);
}
