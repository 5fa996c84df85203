import type { Database } from '@scheduling/postgres';
import { type Insertable, sql } from 'kysely';
import { asMessaging } from './apply-event.ts';
import type { DeadLetterTable, MessagingSchema } from './schema.ts';

/** An event that a consumer could not process. */
export interface FailedEvent {
  consumer: string;
  eventId: string;
}

/** Returns how often it has failed until now, in any process. */
export async function countFailure<Schema extends MessagingSchema>(
  database: Database<Schema>,
  { consumer, eventId }: FailedEvent,
): Promise<number> {
  const { failures } = await database.transaction((tx) =>
    asMessaging(tx)
      .insertInto('eventFailure')
      .values({ consumer, eventId, failures: 1 })
      .onConflict((conflict) =>
        conflict.columns(['consumer', 'eventId']).doUpdateSet((row) => ({
          failures: sql<number>`${row.ref('eventFailure.failures')} + 1`,
          failedAt: row.ref('excluded.failedAt'),
        })),
      )
      .returning('failures')
      .executeTakeFirstOrThrow(),
  );
  return failures;
}

/**
 * Makes it a dead letter. If it is one already, because it was delivered again or published again, that one is
 * replaced.
 */
export async function putAside<Schema extends MessagingSchema>(
  database: Database<Schema>,
  deadLetter: FailedEvent & Insertable<DeadLetterTable>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    const tx = asMessaging(transaction);
    await tx
      .insertInto('deadLetter')
      .values(deadLetter)
      .onConflict((conflict) =>
        conflict.columns(['consumer', 'eventId']).doUpdateSet((row) => ({
          error: row.ref('excluded.error'),
          attempts: row.ref('excluded.attempts'),
          failedAt: row.ref('excluded.failedAt'),
        })),
      )
      .execute();
    await tx
      .deleteFrom('eventFailure')
      .where('consumer', '=', deadLetter.consumer)
      .where('eventId', '=', deadLetter.eventId)
      .execute();
  });
}
