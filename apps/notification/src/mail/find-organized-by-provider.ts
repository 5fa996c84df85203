import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

/** Which of these participations are from before the sender became the organizer (ADR 34): their events are in calendars with the provider as the organizer. */
export async function findOrganizedByProvider({ kysely }: Database<NotificationSchema>, participationIds: string[]): Promise<Set<string>> {
  const { rows } = await sql<{ participationId: string }>`
    SELECT participation_id FROM organizer_rule, unnest(${participationIds}::uuid[]) AS participation_id
     WHERE uuid_extract_timestamp(participation_id) < sender_since`.execute(kysely);
  return new Set(rows.map(({ participationId }) => participationId));
}
