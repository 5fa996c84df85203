import { DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import {
  dropDeadLetter,
  getDeadLetter,
  listDeadLetters,
  type MessagingSchema,
  retryDeadLetter,
  type RetryOptions,
} from '@scheduling/messaging';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';
import type { Kysely } from 'kysely';

/** Lets operators manage the dead letters of this service. */
export function hostDeadLetterService<Schema extends MessagingSchema>(options: RetryOptions<Schema>): HostedService {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  return hostOperatorService(DeadLetterServiceService, {
    listDeadLetters: async () => ({ deadLetters: await listDeadLetters(db) }),
    getDeadLetter: (key) => getDeadLetter(db, key),
    retryDeadLetter: async (key) => ({ failure: await retryDeadLetter(options, key) }),
    dropDeadLetter: async (key) => {
      await dropDeadLetter(options.database, key);
      return {};
    },
  });
}
