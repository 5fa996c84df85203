import type { Database } from '@scheduling/postgres';
import { lowestId } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import { type LatestVersion, numbersOf, readLatestVersions, type Subject, subjectsOf } from './latest-versions.ts';
import { orderEvents, placesOf } from './order-events.ts';
import { type IncomingEvent, writeEvents } from './record-events.ts';

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

type Reader = Pick<Database<WebhookSchema>, 'kysely'>;

/** An event that waits. */
interface WaitingEvent extends IncomingEvent {
  isOverdue: boolean;
}

/** Of many events, so many are looked at together. */
const pageSize = 2_000;

/**
 * Moves events that have been waiting into the feed, where each gets the next sequence of its CRM, in the order of
 * {@link orderEvents}. Returns how many. Webhooks of their CRMs that had nothing to deliver become due.
 */
export async function sequenceEvents(
  database: Reader,
  { limit, waitSeconds, onGaps }: SequenceRequest,
): Promise<number> {
  for (;;) {
    const { next, gaps } = await findNext(database, limit, waitSeconds);
    if (next.length === 0) return 0;
    const { repeated } = await writeEvents(database, { placed: next, waiting: [] });
    const moved = next.filter(({ id }) => !repeated.includes(id));
    // Another process has placed them meanwhile.
    if (moved.length === 0) continue;
    const places = new Set(moved.flatMap(placesOf).map(({ series, number }) => `${number} ${series}`));
    const left = gaps.filter(({ series, last }) => places.has(`${last + 1} ${series}`));
    if (left.length > 0) onGaps?.(left);
    return moved.length;
  }
}

/** The events that are next, and the gaps in front of them or of others. */
async function findNext(
  database: Reader,
  limit: number,
  waitSeconds: number,
): Promise<{ next: WaitingEvent[]; gaps: Gap[] }> {
  let oldest: WaitingEvent | undefined;
  let mayWait = false;
  for (let after = lowestId; ;) {
    const waiting = await readWaiting(database, after, waitSeconds);
    const latest = await readLatestVersions(database, subjectsOf(waiting, allSubjects));
    const { reached, gaps } = await passOverGaps(database, waiting, latest);
    const next = orderEvents(waiting, reached, { limit, waitMs: waitSeconds * 1_000 });
    if (next.length > 0) return { next, gaps };
    oldest ??= waiting[0];
    mayWait ||= waiting.some(({ isOverdue }) => !isOverdue);
    if (waiting.length < pageSize) break;
    after = waiting.at(-1)!.id;
  }
  // Each is behind another one in some series: only numbers that contradict each other, as after the restore of a
  // backup, do this.
  return { next: oldest === undefined || mayWait ? [] : [oldest], gaps: [] };
}

function readWaiting({ kysely }: Reader, after: string, waitSeconds: number): Promise<WaitingEvent[]> {
  return kysely
    .selectFrom('incomingEvent')
    .selectAll()
    .select(sql<boolean>`arrived_at < clock_timestamp() - make_interval(secs => ${waitSeconds})`.as('isOverdue'))
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .execute();
}

/** What an event is about, and what it names. */
function allSubjects(event: WaitingEvent): (string | null)[] {
  return [event.subjectId, event.appointmentId, event.previousAppointmentId, event.customerId];
}

/**
 * The last number of each series that the events are part of, or that what they name has. If one of them is overdue,
 * the first one that has arrived in its series is next: what is missing before it is a gap.
 */
async function passOverGaps(
  database: Reader,
  waiting: WaitingEvent[],
  latest: LatestVersion[],
): Promise<{ reached: Map<string, number>; gaps: Gap[] }> {
  const reached = numbersOf(latest);
  const overdue = waiting.filter(({ isOverdue }) => isOverdue);
  const first = await readFirst(database, overdue);
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

/**
 * The first number that waits in the series of these events and of what they name, behind the last one in the feed.
 */
async function readFirst({ kysely }: Reader, events: WaitingEvent[]): Promise<Map<string, number>> {
  if (events.length === 0) return new Map();
  const subjects = subjectsOf(events, allSubjects);
  const { rows } = await sql<Subject & { version: number | null; ordinal: number | null }>`
    SELECT crm_id, subject_id, min(place.version) FILTER (WHERE place.version > coalesce(latest.version, 0)) AS version,
           min(place.ordinal) FILTER (WHERE place.ordinal > coalesce(latest.ordinal, 0)) AS ordinal
      FROM (SELECT crm_id, subject_id, version, NULL::bigint AS ordinal FROM incoming_event
            UNION ALL
            SELECT crm_id, coalesce(appointment_id, subject_id), NULL, ordinal FROM incoming_event WHERE ordinal IS NOT NULL
            UNION ALL
            SELECT crm_id, previous_appointment_id, NULL, previous_ordinal FROM incoming_event WHERE previous_ordinal IS NOT NULL) AS place
      JOIN unnest(${subjects.map(({ crmId }) => crmId)}::text[], ${subjects.map(({ subjectId }) => subjectId)}::uuid[]) AS listed (crm_id, subject_id)
           USING (crm_id, subject_id)
      LEFT JOIN latest_version AS latest USING (crm_id, subject_id)
     GROUP BY crm_id, subject_id`.execute(kysely);
  return numbersOf(rows);
}
