import { type Kysely, type RawBuilder, sql } from 'kysely';
import { appointmentJson } from '../appointment/appointment-json.ts';
import { selectAppointments } from '../appointment/appointment.ts';
import type { CalendarSchema } from '../db/schema.ts';
import { maxCharacters, timeslotLength } from '../message-length.ts';
import { lowestId, type PagePosition } from '../page-cursor.ts';
import { maxRows } from './continuation.ts';
import type { TimeslotRecord, TimeslotRow } from './timeslot.ts';

/** Whose timeslots are read. */
export interface PartScope {
  crmId: string;
  providerId: string;
  archiveAfterDays: number;
}

export interface PartStart {
  /** The appointment of the first timeslot after which the part begins. */
  after?: PagePosition | undefined;
  /** How many rows it may have. */
  rows: number;
}

/** Where a part ended before the last timeslot was complete. */
export interface PartEnd {
  /** Its last timeslot. */
  index: number;
  /** The last appointment, if the timeslot has more. */
  appointment?: PagePosition | undefined;
  /** How many rows the next part may have: if this one's texts were long, those of the next probably are, too. */
  nextRows: number;
}

/**
 * As many of the timeslots with their appointments as fit into one message, at least one timeslot or appointment. A timeslot without appointments
 * is a row, and so is each participation, and each appointment without one, once per timeslot; of the keys, a part reads hardly more than it has
 * rows. `end` is absent if these were all.
 */
export async function readPart(
  db: Kysely<CalendarSchema>,
  scope: PartScope,
  timeslots: TimeslotRow[],
  start: PartStart,
): Promise<{ timeslots: TimeslotRecord[]; end?: PartEnd | undefined }> {
  if (timeslots.length === 0) return { timeslots: [] };
  const { rows: keys } = await selectKeys(scope, timeslots, start).execute(db);
  const pairs = groupKeys(keys);
  // The last one may have more participations.
  const complete = keys.length > start.rows ? pairs.slice(0, -1) : pairs;
  const texts = await readAppointments(db, scope, complete);
  const taken = complete.slice(0, countFitting(complete, timeslots, texts));
  const byTimeslot = Map.groupBy(taken, ({ index }) => index);
  const last = taken.at(-1)!;
  return {
    timeslots: timeslots.slice(0, last.index + 1).map((row, index) => ({
      row,
      // One that has been deleted since the keys were read is left out.
      appointments: byTimeslot.get(index)!.flatMap(({ appointment }) => texts.get(appointment?.id ?? '') ?? []),
    })),
    end: taken.length < pairs.length ? endOf(taken, pairs[taken.length]!, taken.length < complete.length) : undefined,
  };
}

interface KeyRow {
  /** Of the timeslot, from 1. */
  number: number;
  /** Of the appointment; null for a timeslot without any. */
  id: string | null;
  startsAt: Date | null;
}

/**
 * The rows of a part and one more, in order. Only indexes are read; a timeslot with many appointments, or an appointment with many participations, no
 * further than the part may reach.
 */
export function selectKeys({ crmId, providerId }: PartScope, timeslots: TimeslotRow[], { after, rows }: PartStart): RawBuilder<KeyRow> {
  const starts = timeslots.map(({ startsAt }, index) => (index === 0 && after !== undefined && after.startsAt >= startsAt ? after : { startsAt, id: lowestId }));
  return sql<KeyRow>`
    SELECT pair.number, pair.id, pair.starts_at
      FROM (
        SELECT listed.number, found.id, found.starts_at
          FROM unnest(
                 ${timeslots.map(({ resourceReference }) => resourceReference)}::text[],
                 ${starts.map(({ startsAt }) => startsAt.toISOString())}::timestamptz[],
                 ${starts.map(({ id }) => id)}::uuid[],
                 ${timeslots.map(({ endsAt }) => endsAt.toISOString())}::timestamptz[])
               WITH ORDINALITY AS listed (resource_reference, after_start, after_id, ends_at, number)
          LEFT JOIN LATERAL (
            SELECT appointment.id, appointment.starts_at
              FROM appointment
             WHERE appointment.crm_id = ${crmId} AND appointment.provider_id = ${providerId}
               AND appointment.resource_reference = listed.resource_reference
               AND (appointment.starts_at, appointment.id) > (listed.after_start, listed.after_id)
               AND appointment.starts_at < listed.ends_at AND appointment.ends_at <= listed.ends_at
             ORDER BY appointment.starts_at, appointment.id
             LIMIT ${rows + 1}) AS found ON true
         ORDER BY listed.number, found.starts_at, found.id
         LIMIT ${rows + 1}) AS pair
      LEFT JOIN LATERAL (
        SELECT FROM participation
         WHERE participation.crm_id = ${crmId} AND participation.appointment_id = pair.id
         LIMIT ${rows}) AS counted ON true
     ORDER BY pair.number, pair.starts_at, pair.id
     LIMIT ${rows + 1}`;
}

/** A timeslot and one of its appointments, or a timeslot without any. */
interface Pair {
  /** Of the timeslot. */
  index: number;
  appointment?: PagePosition | undefined;
  rows: number;
}

function groupKeys(keys: KeyRow[]): Pair[] {
  const pairs: Pair[] = [];
  for (const { number, id, startsAt } of keys) {
    const index = number - 1;
    const last = pairs.at(-1);
    if (last?.index === index && last.appointment?.id === id) last.rows += 1;
    else pairs.push({ index, appointment: id === null ? undefined : { id, startsAt: startsAt! }, rows: 1 });
  }
  return pairs;
}

/** As JSON, by id; an appointment that is in several timeslots is read once. */
async function readAppointments(db: Kysely<CalendarSchema>, scope: PartScope, pairs: Pair[]): Promise<Map<string, string>> {
  const ids = [...new Set(pairs.flatMap(({ appointment }) => appointment?.id ?? []))];
  if (ids.length === 0) return new Map();
  const found = selectAppointments(db, scope.archiveAfterDays)
    .where('crmId', '=', scope.crmId)
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`);
  const rows = await db.selectFrom(found.as('appointment')).select(['id', appointmentJson.as('json')]).execute();
  return new Map(rows.map(({ id, json }) => [id, json]));
}

/** How many of the pairs fit into one message. */
function countFitting(pairs: Pair[], timeslots: TimeslotRow[], texts: Map<string, string>): number {
  let characters = 0;
  const excess = pairs.findIndex(({ index, appointment }, number) => {
    if (index !== pairs[number - 1]?.index) characters += timeslotLength(timeslots[index]!);
    characters += texts.get(appointment?.id ?? '')?.length ?? 0;
    return characters > maxCharacters && number > 0;
  });
  return excess === -1 ? pairs.length : excess;
}

function endOf(taken: Pair[], next: Pair, wasCut: boolean): PartEnd {
  const { index, appointment } = taken.at(-1)!;
  const takenRows = taken.reduce((sum, { rows }) => sum + rows, 0);
  return { index, appointment: next.index === index ? appointment : undefined, nextRows: wasCut ? Math.min(maxRows, 2 * takenRows) : maxRows };
}
