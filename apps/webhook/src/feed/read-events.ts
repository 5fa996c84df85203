import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import type { StoredEvent } from './describe-events.ts';
import type { Position } from './find-position.ts';

export interface EventsFilter {
  crmId: string;
  /** The sequence after which it begins. */
  after: number;
  limit: number;
  /** Empty: all. */
  types: string[];
  /** Null: of all providers, and those without one. */
  providerId: string | null;
  /** Whose events are left out. */
  ignoreActors: string[];
}

export interface PlacedEvent extends StoredEvent {
  sequence: number;
}

/** How many events are looked at if not all of them are listed. */
const maxExamined = 10_000;

export interface EventsRead {
  listed: PlacedEvent[];
  /** Undefined if there are none. */
  lastExamined: Position | undefined;
  /**
   * Some that came between the position and the first one that was looked at are no longer kept: sequences have no
   * gaps.
   */
  isIncomplete: boolean;
}

/**
 * The next events that pass the filter, and the last one that was looked at. In one statement, so that no event is
 * recorded between the last one listed and the last one looked at, and none is removed unnoticed.
 */
export async function readEvents(
  { kysely }: Database<WebhookSchema>,
  { crmId, after, limit, types, providerId, ignoreActors }: EventsFilter,
): Promise<EventsRead> {
  const isFiltered = types.length > 0 || providerId !== null || ignoreActors.length > 0;
  const { rows } = await sql<
    { firstSequence: number; examinedId: string; examinedSequence: number } & (PlacedEvent | { id: null })
  >`
    WITH examined AS MATERIALIZED (
      SELECT * FROM event WHERE crm_id = ${crmId} AND sequence > ${after} ORDER BY sequence LIMIT ${isFiltered ? maxExamined : limit}
    )
    SELECT listed.*, (SELECT min(sequence) FROM examined) AS first_sequence, last_examined.id AS examined_id, last_examined.sequence AS examined_sequence
      FROM (SELECT id, sequence FROM examined ORDER BY sequence DESC LIMIT 1) AS last_examined
      LEFT JOIN (
        SELECT crm_id, id, type, subject_id, version, provider_id, appointment_id, previous_appointment_id, customer_id, state, previous_state, capacity, exempt, actor,
               sequence, coalesce(uuid_extract_timestamp(id), recorded_at) AS occurred_at
          FROM examined
         WHERE (${types.length} = 0 OR type = ANY (${types}::text[])) AND (${providerId}::uuid IS NULL OR provider_id = ${providerId}::uuid)
           AND actor <> ALL (${ignoreActors}::text[])
         ORDER BY sequence
         LIMIT ${limit}
      ) AS listed ON true
     ORDER BY listed.sequence`.execute(kysely);
  const [first] = rows;
  const listed = rows.filter((row) => row.id !== null);
  const last = listed.at(-1);
  const isIncomplete = first !== undefined && first.firstSequence > after + 1;
  // Behind a full page, events may have been looked at that it has no room for.
  if (last !== undefined && listed.length === limit)
    return { listed, lastExamined: { id: last.id, sequence: last.sequence }, isIncomplete };
  return { listed, lastExamined: first && { id: first.examinedId, sequence: first.examinedSequence }, isIncomplete };
}
