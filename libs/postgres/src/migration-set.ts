import type { Migration } from 'kysely/migration';
import type { SqlFile } from './sql-files.ts';

/** Migrations with a separate history table, so that those of a library and of a service are numbered independently. */
export interface MigrationSet {
  /** Prefix of the history table, such as `messaging`. */
  name: string;
  /** By name, such as `0016-what`; run in the order of this list, never edited once landed. */
  migrations: Record<string, SchemaMigration>;
  /** Run after the migrations of the set, and again when they change, all in one transaction. */
  functions?: readonly SqlFile[];
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
