import { type DeadLetter, DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostService } from '@scheduling/rpc';
import { DomainError } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import type { Broker } from './broker.ts';
import { events } from './events.ts';
import { eventHeaders } from './publish-event.ts';
import type { DeadLetterTable, MessagingSchema } from './schema.ts';

export interface DeadLetterOptions<Schema extends MessagingSchema> {
  database: Database<Schema>;
  broker: Broker;
}

type DeadLetterRow = Selectable<DeadLetterTable>;

interface DeadLetterKey {
  consumer: string;
  eventId: string;
}

const maxListed = 500;
const publishMs = 1_500;

/** What operators do with the events that this service put aside. */
export function hostDeadLetterService<Schema extends MessagingSchema>(options: DeadLetterOptions<Schema>): HostedService {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  return hostService(DeadLetterServiceService, {
    listDeadLetters: async () => {
      const rows = await db.selectFrom('dead_letter').selectAll().orderBy('failed_at', 'desc').limit(maxListed).execute();
      return { deadLetters: rows.map(toMessage) };
    },
    getDeadLetter: async (key) => {
      const row = await findDeadLetter(db, key);
      return { deadLetter: toMessage(row), data: readData(row) };
    },
    retryDeadLetter: async (key) => {
      const row = await findDeadLetter(db, key);
      await publishAgain(options.broker, row);
      await deleteDeadLetter(db, row);
      return {};
    },
    dropDeadLetter: async (key) => {
      await deleteDeadLetter(db, await findDeadLetter(db, key));
      return {};
    },
  });
}

async function findDeadLetter(db: Kysely<MessagingSchema>, key: DeadLetterKey): Promise<DeadLetterRow> {
  const notFound = (): DomainError => DomainError.notFound('dead_letter.not_found', 'There is no such dead letter.');
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(key.eventId)) throw notFound();
  return db
    .selectFrom('dead_letter')
    .selectAll()
    .where('consumer', '=', key.consumer)
    .where('event_id', '=', key.eventId)
    .executeTakeFirstOrThrow(notFound);
}

/** Not one that has failed again in the meantime: a Date has milliseconds, the table has more. */
async function deleteDeadLetter(db: Kysely<MessagingSchema>, row: DeadLetterRow): Promise<void> {
  await db
    .deleteFrom('dead_letter')
    .where('consumer', '=', row.consumer)
    .where('event_id', '=', row.event_id)
    .where(sql<Date>`date_trunc('milliseconds', failed_at)`, '=', row.failed_at)
    .execute();
}

/**
 * The same event with its own id, which every inbox knows, and a message id that JetStream's own search for duplicates does not. Should this
 * process end before the dead letter is deleted, the event is there twice, and the inbox takes one.
 */
async function publishAgain(broker: Broker, row: DeadLetterRow): Promise<void> {
  const headers = eventHeaders({
    id: row.event_id,
    service: row.subject.split('.')[1] ?? '',
    type: definitionOf(row)?.type ?? '',
    time: row.failed_at,
    requestId: row.request_id,
    repeated: true,
  });
  try {
    const { client } = await broker.jetStream(AbortSignal.timeout(publishMs));
    await client.publish(row.subject, row.payload, { msgID: randomUUID(), headers, timeout: publishMs });
  } catch (error) {
    throw DomainError.unavailable('broker.unavailable', 'NATS does not answer.', error);
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
    // What cannot be read may be the reason why it lies here.
    return undefined;
  }
}

function toMessage(row: DeadLetterRow): DeadLetter {
  return {
    consumer: row.consumer,
    eventId: row.event_id,
    subject: row.subject,
    error: row.error,
    attempts: row.attempts,
    failedAt: row.failed_at,
    requestId: row.request_id,
  };
}
