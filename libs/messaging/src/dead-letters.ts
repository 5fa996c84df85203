import type { DeadLetter } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import { type Broker, eventHeaders, events } from '@scheduling/events';
import { isUuid } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import type { DeadLetterTable, MessagingSchema } from './schema.ts';

type DeadLetterRow = Selectable<DeadLetterTable>;

export interface DeadLetterKey {
  consumer: string;
  eventId: string;
}

const maxListed = 500;
const publishMs = 1_500;

/** The newest 500, newest first. */
export async function listDeadLetters(db: Kysely<MessagingSchema>): Promise<DeadLetter[]> {
  return db.selectFrom('deadLetter').selectAll().orderBy('failedAt', 'desc').limit(maxListed).execute();
}

/** A dead letter with its data as JSON, if it can be decoded. Rejects with `dead_letter.not_found`. */
export async function getDeadLetter(db: Kysely<MessagingSchema>, key: DeadLetterKey): Promise<{ deadLetter: DeadLetter; data: string | undefined }> {
  const row = await requireDeadLetter(db, key);
  return { deadLetter: row, data: readData(row) };
}

/** Publishes the event again and removes the dead letter. Rejects with `dead_letter.not_found` or `broker.unavailable`. */
export async function retryDeadLetter(db: Kysely<MessagingSchema>, broker: Broker, key: DeadLetterKey): Promise<void> {
  const row = await requireDeadLetter(db, key);
  await publishAgain(broker, row);
  await deleteDeadLetter(db, row);
}

/** Rejects with `dead_letter.not_found`. */
export async function dropDeadLetter(db: Kysely<MessagingSchema>, key: DeadLetterKey): Promise<void> {
  await deleteDeadLetter(db, await requireDeadLetter(db, key));
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

/** Does not delete one that has failed again in the meantime: a Date has milliseconds, the table has a higher precision. */
async function deleteDeadLetter(db: Kysely<MessagingSchema>, row: DeadLetterRow): Promise<void> {
  await db
    .deleteFrom('deadLetter')
    .where('consumer', '=', row.consumer)
    .where('eventId', '=', row.eventId)
    .where(sql<Date>`date_trunc('milliseconds', failed_at)`, '=', row.failedAt)
    .execute();
}

/**
 * The same event with its own id, which every inbox knows, and a message id that is new to JetStream's deduplication. If this
 * process ends before the dead letter is deleted, the event exists twice, and the inbox ignores the second one.
 */
async function publishAgain(broker: Broker, row: DeadLetterRow): Promise<void> {
  const headers = eventHeaders({
    id: row.eventId,
    service: row.subject.split('.')[1] ?? '',
    type: definitionOf(row)?.type ?? '',
    time: row.failedAt,
    requestId: row.requestId,
    repeated: true,
  });
  try {
    const { client } = await broker.jetStream(AbortSignal.timeout(publishMs));
    await client.publish(row.subject, row.payload, { msgID: randomUUID(), headers, timeout: publishMs });
  } catch (error) {
    throw new DomainError('broker.unavailable', { cause: error });
  }
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
