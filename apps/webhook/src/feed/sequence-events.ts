import type { Database } from '@scheduling/postgres';
import { lowestId } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import { type ArrivedEvent, orderEvents, ordinalsOf, placesOf, versionsOf } from './order-events.ts';

interface SequenceRequest {
  /** The most events to be moved. */
  limit: number;
  /** How long an event waits for its predecessors. */
  waitSeconds: number;
  /**
   * Called, once they are committed, with the gaps that events have left behind them because they did not wait any
   * longer.
   */
  onGaps?: (gaps: Gap[]) => void;
}

/** Numbers of a series that had not arrived when the next one got its place. */
export interface Gap {
  series: string;
  first: number;
  last: number;
}

/** Of many events, so many are looked at together: most are next. */
const pageSize = 2_000;

/**
 * Moves events that have arrived into the feed, where each gets the next sequence of its CRM, in the order of {@link
 * orderEvents}. Returns how many. Webhooks of their CRMs that had nothing to deliver become due.
 */
export async function sequenceEvents(
  { kysely }: Pick<Database<WebhookSchema>, 'kysely'>,
  { limit, waitSeconds, onGaps }: SequenceRequest,
): Promise<number> {
  const { moved, gaps } = await kysely
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      // One process at a time, so that sequences become visible in their order. What others have committed until now is
      // visible to the next statement.
      await sql`SELECT pg_advisory_xact_lock(hashtextextended('sequence_events', 0))`.execute(tx);
      let oldest: ArrivedEvent | undefined;
      let mayWait = false;
      for (let after = lowestId; ;) {
        const arrived = await readArrived(tx, after, waitSeconds);
        const { reached, gaps } = await readReached(tx, arrived);
        const next = orderEvents(arrived, reached, { limit, waitMs: waitSeconds * 1_000 });
        if (next.length > 0) return place(tx, next, gaps);
        oldest ??= arrived[0];
        mayWait ||= arrived.some(({ isOverdue }) => !isOverdue);
        if (arrived.length < pageSize) break;
        after = arrived.at(-1)!.id;
      }
      // Each is behind another one in some series: only numbers that contradict each other, as after the restore of a
      // backup, do this.
      return oldest === undefined || mayWait ? { moved: 0, gaps: [] } : place(tx, [oldest], []);
    });
  if (gaps.length > 0) onGaps?.(gaps);
  return moved;
}

async function place(
  tx: Transaction<WebhookSchema>,
  events: ArrivedEvent[],
  gaps: Gap[],
): Promise<{ moved: number; gaps: Gap[] }> {
  await placeEvents(tx, events);
  const places = new Set(events.flatMap(placesOf).map(({ series, number }) => `${number} ${series}`));
  return { moved: events.length, gaps: gaps.filter(({ series, last }) => places.has(`${last + 1} ${series}`)) };
}

async function readArrived(
  tx: Transaction<WebhookSchema>,
  after: string,
  waitSeconds: number,
): Promise<ArrivedEvent[]> {
  return tx
    .selectFrom('incomingEvent')
    .select([
      'crmId',
      'id',
      'subjectId',
      'version',
      'appointmentId',
      'ordinal',
      'previousAppointmentId',
      'previousOrdinal',
      'customerId',
    ])
    .select(sql<boolean>`arrived_at < clock_timestamp() - make_interval(secs => ${waitSeconds})`.as('isOverdue'))
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .execute();
}

/**
 * The last number of each series that the events are part of, or that what they name has. If one of them is overdue,
 * the first one that has arrived in its series is next: what is missing before it is a gap.
 */
async function readReached(
  tx: Transaction<WebhookSchema>,
  arrived: ArrivedEvent[],
): Promise<{ reached: Map<string, number>; gaps: Gap[] }> {
  const subjects = subjectsOf(arrived);
  if (subjects.length === 0) return { reached: new Map(), gaps: [] };
  const { rows } =
    await sql<Reached>`SELECT crm_id, subject_id, version, ordinal FROM latest_version JOIN ${listed(subjects)} USING (crm_id, subject_id)`.execute(
      tx,
    );
  const reached = numbersOf(rows);
  const overdue = arrived.filter(({ isOverdue }) => isOverdue);
  const first = await readFirst(tx, overdue);
  const gaps: Gap[] = [];
  for (const series of new Set(overdue.flatMap(placesOf).map((each) => each.series))) {
    const number = first.get(series);
    if (number === undefined) continue;
    const missing = (reached.get(series) ?? 0) + 1;
    if (missing < number) gaps.push({ series, first: missing, last: number - 1 });
    reached.set(series, number - 1);
  }
  return { reached, gaps };
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

/**
 * The first number that has arrived in the series of these events and of what they name, behind the last one in the
 * feed.
 */
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
