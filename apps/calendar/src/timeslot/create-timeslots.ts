import { collectFieldErrors, DomainError, type FieldErrors } from '@scheduling/errors';
import { transactOnce, withRows } from '@scheduling/postgres';
import { type Insertable, type Kysely, sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime } from '../date-time.ts';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema, Location, TimeslotTable } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider, type ProviderRow } from '../provider/provider-copy.ts';
import { givenBuffers } from './given-buffers.ts';
import { readAnswer } from './read-part.ts';
import type { TimeslotRecord, TimeslotState } from './timeslot.ts';
import { checkWindow } from './window.ts';

export interface NewTimeslot {
  /** Absent: generated. */
  reference?: string | undefined;
  resourceReference: string;
  /** Date-times as in the interface, in the provider's time zone; start absent: now, truncated to the minute. */
  start?: string | undefined;
  end: string;
  /** Minutes. */
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address?: Location | undefined;
  /** Minutes; absent: 0. */
  bufferBefore?: number | undefined;
  bufferAfter?: number | undefined;
  state: TimeslotState;
}

export interface NewTimeslots {
  crmId: string;
  providerReference: string;
  timeslots: NewTimeslot[];
}

export interface CreatedTimeslots {
  timeslots: TimeslotRecord[];
  created: boolean;
  /** Set if these are only the first part: `listTimeslots` returns the others. */
  continuation?: string | undefined;
}

/**
 * Creates all timeslots or none (interface 4.1) and returns them in the order of the request. For a reference that
 * exists with the same content, the existing timeslot is returned; `created` is false when all existed. Rejects with
 * `timeslot.invalid`, `timeslot.reference_taken` or `provider.not_found`.
 */
export async function createTimeslots(
  dependencies: CalendarDependencies,
  request: NewTimeslots,
): Promise<CreatedTimeslots> {
  const { database, archiveAfterDays } = dependencies;
  const { crmId } = request;
  const provider = await requireProvider(dependencies, request);
  const scope = { crmId, providerId: provider.id, archiveAfterDays };
  const answer = async (tx: Transaction<CalendarSchema>, ids: string[], created: boolean): Promise<Answer> => ({
    ...(await readAnswer(tx, scope, ids)),
    created,
    ids,
  });
  return transactOnce(database, crmId, {
    work: async (tx) => {
      const rows = readTimeslots(request, provider, await currentMinute(tx, crmId));
      if (rows.length === 0) return answer(tx, [], false);
      const created = await insertTimeslots(tx, rows);
      return answer(tx, await requireStored(tx, rows), created);
    },
    keep: ({ ids, created }) => ({ resourceIds: ids, created }),
    replay: async (tx, { resourceIds, created }) => {
      const remaining = await answer(tx, resourceIds, created);
      if (remaining.timeslots.length === 0) throw new DomainError('timeslot.not_found');
      return remaining;
    },
  });
}

/** With the ids of all timeslots, those of later parts, too. */
interface Answer extends CreatedTimeslots {
  ids: string[];
}

async function currentMinute(db: Kysely<CalendarSchema>, crmId: string): Promise<Date> {
  const { rows } = await sql<{ minute: Date }>`SELECT date_trunc('minute', ${timeOf(crmId)}) AS minute`.execute(db);
  return rows[0]!.minute;
}

type NewRow = Insertable<TimeslotTable>;

function readTimeslots({ timeslots }: NewTimeslots, provider: ProviderRow, currentMinute: Date): NewRow[] {
  const errors = collectFieldErrors();
  const seen = new Set<string>();
  const rows = timeslots.map((timeslot, index) => {
    const pointer = `/timeslots/${index}`;
    if (timeslot.reference !== undefined && seen.has(timeslot.reference))
      errors.add(`${pointer}/reference`, 'occurs more than once');
    if (timeslot.reference !== undefined) seen.add(timeslot.reference);
    return readTimeslot(errors, pointer, timeslot, provider, currentMinute);
  });
  errors.throwIfAny('timeslot.invalid');
  return rows;
}

function readTimeslot(
  errors: FieldErrors,
  pointer: string,
  timeslot: NewTimeslot,
  provider: ProviderRow,
  currentMinute: Date,
): NewRow {
  const given = timeslot.start === undefined ? undefined : parseDateTime(timeslot.start, provider.timeZone);
  const startsAt = given ?? currentMinute;
  const endsAt = parseDateTime(timeslot.end, provider.timeZone);
  checkWindow(errors, pointer, { startsAt, endsAt, raster: timeslot.raster });
  const { resourceReference, raster, defaultCapacity, defaultAcceptBookings, state } = timeslot;
  const { bufferBefore = 0, bufferAfter = 0 } = timeslot;
  const address = timeslot.address === undefined ? null : JSON.stringify(timeslot.address);
  const details = { resourceReference, raster, defaultCapacity, defaultAcceptBookings, address, state };
  return {
    crmId: provider.crmId,
    providerId: provider.id,
    reference: timeslot.reference ?? `${randomUUIDv7()}@scheduling`,
    startsAt,
    endsAt,
    // Uses the start as given: a retry in the next minute is still the same request.
    contentDigest: contentDigest([given ?? null, endsAt, details, ...givenBuffers(bufferBefore, bufferAfter)]),
    ...details,
    bufferBefore,
    bufferAfter,
  };
}

/**
 * Inserted in the order of the references, so that two requests with the same ones cannot deadlock. False: none was
 * new.
 */
async function insertTimeslots(tx: Transaction<CalendarSchema>, rows: NewRow[]): Promise<boolean> {
  const sorted = rows.toSorted((a, b) => (a.reference < b.reference ? -1 : 1));
  const { numInsertedOrUpdatedRows = 0n } = await withRows(tx.insertInto('timeslot'), sorted, { json: ['address'] })
    .onConflict((conflict) => conflict.constraint('timeslot_reference_key').doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows > 0n;
}

/**
 * The ids of the rows stored under the references of the request: inserted just now or earlier, with the same content.
 */
async function requireStored(tx: Transaction<CalendarSchema>, rows: NewRow[]): Promise<string[]> {
  const found = await tx
    .selectFrom('timeslot')
    .select(['id', 'reference', 'providerId', 'contentDigest'])
    .where('crmId', '=', rows[0]!.crmId)
    .where(sql<boolean>`reference = ANY(${rows.map((row) => row.reference)})`)
    .execute();
  const byReference = new Map(found.map((row) => [row.reference, row]));
  return rows.map((row) => {
    const stored = byReference.get(row.reference);
    if (
      stored === undefined ||
      stored.providerId !== row.providerId ||
      !stored.contentDigest.equals(row.contentDigest)
    ) {
      throw new DomainError('timeslot.reference_taken', {
        text: `A timeslot with the reference ${row.reference} and different content already exists.`,
      });
    }
    return stored.id;
  });
}
