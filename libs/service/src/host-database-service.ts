import { DatabaseServiceService } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import { type MessagingSchema, readOutboxState } from '@scheduling/messaging';
import { checkDatabase, type Database, inspectDatabase, type MigrationSet } from '@scheduling/postgres';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';
import { reasonOf } from '@scheduling/runtime';
import type { Kysely } from 'kysely';

/** Reports the state of this service's database to operators. */
export function hostDatabaseService<Schema extends MessagingSchema>(options: {
  url: string;
  migrations: readonly MigrationSet[];
  database: Database<Schema>;
}): HostedService {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  return hostOperatorService(DatabaseServiceService, {
    getDatabaseState: async () => {
      const { missing, newer, breaking, time } = await answered(inspectDatabase(options.url, options.migrations));
      const outbox = missing.length > 0 ? undefined : await readOutboxState(db);
      return {
        missingMigrations: missing,
        newerMigrations: newer,
        breakingMigrations: breaking,
        time,
        outbox: outbox && {
          unsentEvents: outbox.events,
          oldestUnsentSeconds: outbox.seconds,
          refilling: outbox.refilling,
        },
      };
    },
    checkDatabase: () => answered(checkDatabase(options.url)),
  });
}

/** Whatever fails, the database has not answered. Operators are told the reason. */
function answered<Result>(asking: Promise<Result>): Promise<Result> {
  return asking.catch((error: unknown) => {
    throw new DomainError('database.unavailable', { cause: error, text: reasonOf(error) });
  });
}
