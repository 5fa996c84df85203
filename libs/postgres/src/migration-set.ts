import type { Migration } from 'kysely/migration';

/** Migrations with a separate history table, so that those of a library and of a service are numbered independently. */
export interface MigrationSet {
  /** Prefix of the history table, such as `messaging`. */
  name: string;
  /** By name; run in the order of the names, never edited once landed. */
  migrations: Record<string, SchemaMigration>;
  /**
   * For functions that call each other: all pending ones are replaced in one transaction. Otherwise each migration is a
   * transaction of its own, so that its locks are not held while later ones run.
   */
  inOneTransaction?: boolean;
}

/**
 * Its statements wait for a lock for at most 1.2 seconds each. If one does not get it, the transaction is rolled back
 * and tried again, for 4 minutes.
 */
export interface SchemaMigration extends Migration {
  /**
   * `export const breaking = true` in a migration with which older code cannot work, such as one that drops what it
   * reads. First expand in one migration, deploy the code that needs only the new form everywhere, and contract in a
   * later one with this flag. From then on every process that does not know the migration exits.
   */
  breaking?: boolean;
  /**
   * `export const withoutTransaction = true` in a migration that cannot be one transaction, such as one that changes
   * many rows in batches. It must be repeatable, because after a failure halfway it runs again from the start. It waits
   * for locks without a limit, so its statements must not block requests while they wait. For an index there is
   * `concurrentIndex`.
   */
  withoutTransaction?: boolean;
}
