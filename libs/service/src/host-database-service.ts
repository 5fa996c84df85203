import { DatabaseServiceService } from '@scheduling/contracts/operations/v1';
import { DomainError } from '@scheduling/errors';
import { type MessagingSchema, type OutboxState, selectOutboxState } from '@scheduling/messaging';
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
  const { sql, parameters } = selectOutboxState(db).compile();
  return hostOperatorService(DatabaseServiceService, {
    getDatabaseState: async () => {
      const state = await answered(
        inspectDatabase(options.url, options.migrations, async (client) => {
          const { rows } = await client.query<OutboxState>(sql, [...parameters]);
          return rows[0]!;
        }),
      );
      const { missing, newer, breaking, time, more: outbox } = state;
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
