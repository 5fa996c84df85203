import { DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import type { Broker } from '@scheduling/events';
import { dropDeadLetter, getDeadLetter, listDeadLetters, type MessagingSchema, retryDeadLetter } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';
import type { Kysely } from 'kysely';

/** Lets operators manage the dead letters of this service. */
export function hostDeadLetterService<Schema extends MessagingSchema>(options: { database: Database<Schema>; broker: Broker }): HostedService {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  return hostOperatorService(DeadLetterServiceService, {
    listDeadLetters: async () => ({ deadLetters: await listDeadLetters(db) }),
    getDeadLetter: (key) => getDeadLetter(db, key),
    retryDeadLetter: async (key) => {
      await retryDeadLetter(db, options.broker, key);
      return {};
    },
    dropDeadLetter: async (key) => {
      await dropDeadLetter(db, key);
      return {};
    },
  });
}
