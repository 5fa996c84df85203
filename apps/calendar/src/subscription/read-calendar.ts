import { writeFeedEvent, writeFeedVersion } from '@scheduling/calendar-file/feed';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { readFunction, withRows } from '@scheduling/postgres';
import { type SpokenLanguage, spokenLanguage } from '@scheduling/runtime';
import { type Kysely, type QueryExecutorProvider, sql, type Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { hashOfSecret, keyedDigest } from './calendar-secret.ts';
import type { CalendarSubscriptionRow } from './calendar-subscription.ts';
import { type AppointmentFacts, describeAppointment, writing } from './describe-appointment.ts';

export interface ReadCalendar extends Pick<
  CalendarSubscriptionRow,
  'providerId' | 'resourceReference' | 'contactReference'
> {
  /** Of the events: another one whenever they differ. */
  version: string;
  /** VEVENT components. Undefined if the reader has this version. */
  events: string | undefined;
}

/** A subscription, and what its reader knows. */
interface Reading {
  subscription: CalendarSubscriptionRow;
  secret: string;
  language: SpokenLanguage;
}

/**
 * The events of the subscription with this secret. As long as nothing changes they are the same, to the byte, and only
 * compared with what was shown last; a change is written, and only then is anything locked, so bookings never wait.
 * Rejects with `link.not_found` for a secret that is none, or with `service.unavailable` if identity does not answer.
 *
 * @param request.version the one that the reader has; empty: none
 */
export async function readCalendar(
  dependencies: CalendarDependencies,
  { secret, version }: { secret: string; version: string },
): Promise<ReadCalendar> {
  const { database, identity } = dependencies;
  const subscription = await findSubscription(database.kysely, secret);
  if (subscription === undefined) throw new DomainError('link.not_found');
  const { crmId, providerId, resourceReference, contactReference } = subscription;
  const answer = await undefinedIfNotFound(identity.getCrm({ crmId }));
  if (answer === undefined) throw new DomainError('link.not_found');
  const reading = { subscription, secret, language: spokenLanguage(answer.crm!.language) ?? 'en' };
  const known = /^\d{1,12}$/.test(version) ? Number(version) : undefined;
  const read = await readFacts(database.kysely, reading, known);
  const unchanged = unchangedEvents(reading, read);
  if (unchanged !== undefined && !read.isUnchanged) await noteComparison(database.kysely, reading, read);
  const events = unchanged ?? (await database.transaction((tx) => readChanged(tx, reading)));
  return { providerId, resourceReference, contactReference, ...events };
}

function findSubscription(db: Kysely<CalendarSchema>, secret: string): Promise<CalendarSubscriptionRow | undefined> {
  return db
    .selectFrom('calendarSubscription')
    .selectAll()
    .where('secretHash', '=', hashOfSecret(secret))
    .executeTakeFirst();
}

type Events = Pick<ReadCalendar, 'version' | 'events'>;

/** See read-calendar.sql. Times are in seconds since 1970. */
interface ReadFacts {
  digest: string | null;
  changedAt: number | null;
  fingerprint: string;
  comparedAt: Date;
  /** Whether nothing can have changed since the digest was made. */
  isUnchanged: boolean;
  /** Null if nothing can have changed and the reader has this version. */
  facts: string | null;
  shown: Record<string, number> | null;
}

/** Rejects with `link.not_found` if the subscription has been deleted meanwhile. */
async function readFacts(db: QueryExecutorProvider, reading: Reading, known: number | undefined): Promise<ReadFacts> {
  const { crmId, id: subscriptionId } = reading.subscription;
  const [row] = await readFunction<ReadFacts>(db, {
    name: 'read_calendar',
    request: { crmId, subscriptionId, version: known, textVersion: textVersionOf(reading) },
  });
  if (row === undefined) throw new DomainError('link.not_found');
  return row;
}

/** Undefined if what the events are made of is not what was shown last. */
function unchangedEvents(reading: Reading, { digest, changedAt, facts, shown }: ReadFacts): Events | undefined {
  const version = String(changedAt);
  if (facts === null) return { version, events: undefined };
  if (changedAt === null || digest !== digestOfFacts(reading, facts).toString('hex')) return undefined;
  if (shown === null) return { version, events: undefined };
  const events = describeEvents(reading, facts).map(({ id, content }) => writeFeedVersion(content, shown[id]!));
  return { version, events: events.join('') };
}

/**
 * Stores that what could have changed has not, so that the next reader need not compare it. An older reading may replace
 * a later one: it is true of what was shown last all the same.
 */
async function noteComparison(db: Kysely<CalendarSchema>, reading: Reading, read: ReadFacts): Promise<void> {
  const { crmId, id } = reading.subscription;
  await db
    .updateTable('calendarSubscription')
    .set({ fingerprint: read.fingerprint, comparedAt: read.comparedAt })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('digest', '=', Buffer.from(read.digest!, 'hex'))
    .execute();
}

/**
 * The same after a change. Of several readers the first one writes it, and the others find that nothing has changed
 * since. The time of a change is at least a second after that of the previous one, also if the clock was set back; so
 * each event that differs, or appears, gets a higher number than any of this subscription before it.
 */
async function readChanged(tx: Transaction<CalendarSchema>, reading: Reading): Promise<Events> {
  const { crmId, id, secretHash } = reading.subscription;
  const locked = await tx
    .selectFrom('calendarSubscription')
    .select(
      sql<number>`greatest(extract(epoch FROM clock_timestamp()), extract(epoch FROM changed_at) + 1)::int8`.as('now'),
    )
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('secretHash', '=', secretHash)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (locked === undefined) throw new DomainError('link.not_found');
  const read = await readFacts(tx, reading, undefined);
  const unchanged = unchangedEvents(reading, read);
  if (unchanged !== undefined) return unchanged;

  const { now } = locked;
  const facts = read.facts!;
  const events = describeEvents(reading, facts);
  const changedAt = await updateShown(tx, reading, events, now);
  await tx
    .updateTable('calendarSubscription')
    .set({
      digest: digestOfFacts(reading, facts),
      changedAt: dateOf(now),
      fingerprint: read.fingerprint,
      comparedAt: read.comparedAt,
    })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .execute();
  const written = events.map((event) => writeFeedVersion(event.content, changedAt.get(event.id) ?? now));
  return { version: String(now), events: written.join('') };
}

interface DescribedEvent {
  /** Of the appointment. */
  id: string;
  content: string;
}

function describeEvents({ subscription, language }: Reading, facts: string): DescribedEvent[] {
  const namesPersons = subscription.details !== 'NONE';
  return facts
    .split('\n')
    .filter(Boolean)
    .map((line) => describeAppointment(JSON.parse(line) as AppointmentFacts, language, namesPersons))
    .map((event) => ({ id: event.id, content: writeFeedEvent(event) }));
}

/**
 * Stores which events are shown from now on, and returns since when those are what they are that have not changed. An
 * event that is left out is forgotten: should it come back, it is new.
 */
async function updateShown(
  tx: Transaction<CalendarSchema>,
  { subscription: { crmId, id: subscriptionId }, secret }: Reading,
  events: DescribedEvent[],
  now: number,
): Promise<Map<string, number>> {
  const rows = await tx
    .selectFrom('shownAppointment')
    .select(['appointmentId', 'digest', 'changedAt'])
    .where('crmId', '=', crmId)
    .where('subscriptionId', '=', subscriptionId)
    .execute();
  const known = new Map(rows.map((row) => [row.appointmentId, row]));
  const changed = events
    .map(({ id, content }) => ({ appointmentId: id, digest: keyedDigest(secret, content) }))
    .filter(({ appointmentId, digest }) => !known.get(appointmentId)?.digest.equals(digest));
  const present = new Set(events.map(({ id }) => id));
  const left = rows.map(({ appointmentId }) => appointmentId).filter((id) => !present.has(id));
  if (left.length > 0)
    await tx
      .deleteFrom('shownAppointment')
      .where('crmId', '=', crmId)
      .where('subscriptionId', '=', subscriptionId)
      .where(sql<boolean>`appointment_id = ANY(${left}::uuid[])`)
      .execute();
  if (changed.length > 0)
    await withRows(
      tx.insertInto('shownAppointment'),
      changed.map((row) => ({ crmId, subscriptionId, ...row, changedAt: dateOf(now) })),
    )
      .onConflict((conflict) =>
        conflict
          .columns(['crmId', 'subscriptionId', 'appointmentId'])
          .doUpdateSet(({ ref }) => ({ digest: ref('excluded.digest'), changedAt: ref('excluded.changedAt') })),
      )
      .execute();
  for (const { appointmentId } of changed) known.delete(appointmentId);
  return new Map([...known].map(([id, { changedAt }]) => [id, changedAt.getTime() / 1_000]));
}

function digestOfFacts(reading: Reading, facts: string): Buffer {
  return keyedDigest(reading.secret, textVersionOf(reading), facts);
}

/** Of what facts are written as. */
function textVersionOf({ language }: Reading): string {
  return `${writing} ${language}`;
}

function dateOf(seconds: number): Date {
  return new Date(seconds * 1_000);
}
