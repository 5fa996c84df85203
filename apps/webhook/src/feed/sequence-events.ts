import type { Database } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import { type ArrivedEvent, orderEvents, ordinalsOf, placesOf, versionsOf } from './order-events.ts';

interface SequenceRequest {
  /** The most events to be moved. */
  limit: number;
  /** How long an event waits for its predecessors. */
  waitSeconds: number;
}

/** Of many events, so many are looked at together: most are next. */
const pageSize = 2_000;
const beforeAllIds = '00000000-0000-0000-0000-000000000000';

/**
 * Moves events that have arrived into the feed, where each gets the next sequence of its CRM, in the order of {@link orderEvents}. Returns how many. Webhooks of their CRMs
 * that had nothing to deliver become due.
 */
export function sequenceEvents({ kysely }: Pick<Database<WebhookSchema>, 'kysely'>, { limit, waitSeconds }: SequenceRequest): Promise<number> {
  return kysely
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      // One process at a time, so that sequences become visible in their order. What others have committed until now is visible to the next statement.
      await sql`SELECT pg_advisory_xact_lock(hashtextextended('sequence_events', 0))`.execute(tx);
      for (let after = beforeAllIds; ; ) {
        const arrived = await readArrived(tx, after, waitSeconds);
        const next = orderEvents(arrived, await readReached(tx, arrived), { limit, waitMs: waitSeconds * 1_000 });
        if (next.length > 0) {
          await placeEvents(tx, next);
          return next.length;
        }
        if (arrived.length < pageSize) return 0;
        after = arrived.at(-1)!.id;
      }
    });
}

async function readArrived(tx: Transaction<WebhookSchema>, after: string, waitSeconds: number): Promise<ArrivedEvent[]> {
  return tx
    .selectFrom('incomingEvent')
    .select(['crmId', 'id', 'subjectId', 'version', 'appointmentId', 'ordinal', 'previousAppointmentId', 'previousOrdinal', 'customerId'])
    .select(sql<boolean>`arrived_at < clock_timestamp() - make_interval(secs => ${waitSeconds})`.as('isOverdue'))
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .execute();
}

/** The last number of each series that the events are part of, or that what they name has. If one of them is overdue, the first one that has arrived in its series is next. */
async function readReached(tx: Transaction<WebhookSchema>, arrived: ArrivedEvent[]): Promise<Map<string, number>> {
  const subjects = subjectsOf(arrived);
  if (subjects.length === 0) return new Map();
  const { rows } = await sql<Reached>`SELECT crm_id, subject_id, version, ordinal FROM latest_version JOIN ${listed(subjects)} USING (crm_id, subject_id)`.execute(tx);
  const reached = numbersOf(rows);
  const overdue = arrived.filter(({ isOverdue }) => isOverdue);
  const first = await readFirst(tx, overdue);
  for (const series of new Set(overdue.flatMap(placesOf).map((place) => place.series))) {
    const number = first.get(series);
    if (number !== undefined) reached.set(series, number - 1);
  }
  return reached;
}

/** The numbers of a subject in both of its series. */
interface Reached {
  crmId: string;
  subjectId: string;
  version: number | null;
  ordinal: number | null;
}

function numbersOf(rows: Reached[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const { crmId, subjectId, version, ordinal } of rows) {
    if (version !== null) numbers.set(versionsOf(crmId, subjectId), version);
    if (ordinal !== null) numbers.set(ordinalsOf(crmId, subjectId), ordinal);
  }
  return numbers;
}

/** The first number that has arrived in the series of these events and of what they name, behind the last one in the feed. */
async function readFirst(tx: Transaction<WebhookSchema>, events: ArrivedEvent[]): Promise<Map<string, number>> {
  if (events.length === 0) return new Map();
  const { rows } = await sql<Reached>`
    SELECT crm_id, subject_id, min(place.version) FILTER (WHERE place.version > coalesce(latest.version, 0)) AS version,
           min(place.ordinal) FILTER (WHERE place.ordinal > coalesce(latest.ordinal, 0)) AS ordinal
      FROM (SELECT crm_id, subject_id, version, NULL::bigint AS ordinal FROM incoming_event
            UNION ALL
            SELECT crm_id, coalesce(appointment_id, subject_id), NULL, ordinal FROM incoming_event WHERE ordinal IS NOT NULL
            UNION ALL
            SELECT crm_id, previous_appointment_id, NULL, previous_ordinal FROM incoming_event WHERE previous_ordinal IS NOT NULL) AS place
      JOIN ${listed(subjectsOf(events))} USING (crm_id, subject_id)
      LEFT JOIN latest_version AS latest USING (crm_id, subject_id)
     GROUP BY crm_id, subject_id`.execute(tx);
  return numbersOf(rows);
}

interface Subject {
  crmId: string;
  id: string;
}

/** What the events are about, and what they name. */
function subjectsOf(events: ArrivedEvent[]): Subject[] {
  const subjects = events.flatMap(({ crmId, subjectId, appointmentId, previousAppointmentId, customerId }) =>
    [subjectId, appointmentId, previousAppointmentId, customerId].flatMap((id) => (id === null ? [] : { crmId, id })),
  );
  return [...new Map(subjects.map((subject) => [`${subject.id} ${subject.crmId}`, subject])).values()];
}

function listed(subjects: Subject[]) {
  return sql`unnest(${subjects.map(({ crmId }) => crmId)}::text[], ${subjects.map(({ id }) => id)}::uuid[]) AS listed (crm_id, subject_id)`;
}

/** See place-events.sql. */
async function placeEvents(tx: Transaction<WebhookSchema>, events: ArrivedEvent[]): Promise<void> {
  const request = { events: events.map(({ crmId, id }) => ({ crm_id: crmId, id })) };
  await sql`SELECT place_events(${JSON.stringify(request)}::jsonb)`.execute(tx);
}
