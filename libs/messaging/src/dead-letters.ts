import type { DeadLetter } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import { consumerName, events } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import { isUuid, runWithContext } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import { applyOnce, describeFailure } from './apply-event.ts';
import { recordAction } from './audit.ts';
import { createInbox } from './inbox.ts';
import type { DeadLetterTable, MessagingSchema } from './schema.ts';
import type { Subscription } from './subscription.ts';

type DeadLetterRow = Selectable<DeadLetterTable>;

export interface DeadLetterKey {
  consumer: string;
  eventId: string;
}

const maxListed = 500;

/** The newest 500, newest first. */
export async function listDeadLetters(db: Kysely<MessagingSchema>): Promise<DeadLetter[]> {
  return db.selectFrom('deadLetter').selectAll().orderBy('failedAt', 'desc').limit(maxListed).execute();
}

/** A dead letter with its data as JSON, if it can be decoded. Rejects with `dead_letter.not_found`. */
export async function getDeadLetter(
  db: Kysely<MessagingSchema>,
  key: DeadLetterKey,
): Promise<{ deadLetter: DeadLetter; data: string | undefined }> {
  const row = await requireDeadLetter(db, key);
  return { deadLetter: row, data: readData(row) };
}

export interface RetryOptions<Schema extends MessagingSchema> {
  service: string;
  subscriptions: Subscription<Schema>[];
  database: Database<Schema>;
}

/**
 * Processes the event again in this process: only its owner may publish it. Removes the dead letter, or, if the event
 * fails again, records why and returns it. Rejects with `dead_letter.not_found`.
 */
export async function retryDeadLetter<Schema extends MessagingSchema>(
  options: RetryOptions<Schema>,
  key: DeadLetterKey,
): Promise<string | undefined> {
  const { service, subscriptions, database } = options;
  const db = database.kysely as unknown as Kysely<MessagingSchema>;
  const row = await requireDeadLetter(db, key);
  await database.transaction((tx) => recordAction(tx, 'dead-letter.retry', row.consumer, row.eventId));
  const subscription = subscriptions.find(({ definition }) => consumerName(service, definition) === row.consumer);
  if (subscription === undefined) return `This version has no consumer ${row.consumer}.`;
  try {
    const event = { id: row.eventId, payload: row.payload, mayBeRepeated: true };
    await runWithContext({ requestId: row.requestId }, () =>
      applyOnce(createInbox(database, row.consumer), subscription, event),
    );
  } catch (error) {
    const failure = describeFailure(error);
    await recordFailure(db, row, failure);
    return failure;
  }
  await deleteDeadLetter(db, row);
  return undefined;
}

/** Rejects with `dead_letter.not_found`. */
export async function dropDeadLetter<Schema extends MessagingSchema>(
  database: Database<Schema>,
  key: DeadLetterKey,
): Promise<void> {
  await database.transaction(async (tx) => {
    const db = tx as unknown as Kysely<MessagingSchema>;
    const row = await requireDeadLetter(db, key);
    await deleteDeadLetter(db, row);
    await recordAction(tx, 'dead-letter.drop', row.consumer, row.eventId);
  });
}

async function requireDeadLetter(db: Kysely<MessagingSchema>, key: DeadLetterKey): Promise<DeadLetterRow> {
  const notFound = (): DomainError => new DomainError('dead_letter.not_found');
  if (!isUuid(key.eventId)) throw notFound();
  return db
    .selectFrom('deadLetter')
    .selectAll()
    .where('consumer', '=', key.consumer)
    .where('eventId', '=', key.eventId)
    .executeTakeFirstOrThrow(notFound);
}

/**
 * Does not delete one that has failed again in the meantime: a Date has milliseconds, the table has a higher precision.
 */
async function deleteDeadLetter(db: Kysely<MessagingSchema>, row: DeadLetterRow): Promise<void> {
  await db
    .deleteFrom('deadLetter')
    .where('consumer', '=', row.consumer)
    .where('eventId', '=', row.eventId)
    .where(sql<Date>`date_trunc('milliseconds', failed_at)`, '=', row.failedAt)
    .execute();
}

async function recordFailure(
  db: Kysely<MessagingSchema>,
  { consumer, eventId, attempts }: DeadLetterRow,
  error: string,
): Promise<void> {
  await db
    .updateTable('deadLetter')
    .set({ error, attempts: attempts + 1, failedAt: sql<Date>`clock_timestamp()` })
    .where('consumer', '=', consumer)
    .where('eventId', '=', eventId)
    .execute();
}

function definitionOf(row: DeadLetterRow) {
  return Object.values(events).find(({ subject }) => subject === row.subject);
}

function readData(row: DeadLetterRow): string | undefined {
  try {
    const definition = definitionOf(row);
    return definition && JSON.stringify(definition.decode(row.payload));
  } catch {
    // Failing to decode may be the reason why it is a dead letter.
    return undefined;
  }
}
