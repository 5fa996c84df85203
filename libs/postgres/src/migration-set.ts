import type { Migration } from 'kysely/migration';

/** Migrations with a history table of their own, so that a library's and a service's are numbered independently. */
export interface MigrationSet {
  /** Prefix of the history table, such as `messaging`. */
  name: string;
  /** By name; run in the order of the names, never edited once landed. */
  migrations: Record<string, SchemaMigration>;
}

export interface SchemaMigration extends Migration {
  /**
   * `export const breaking = true` in a migration that older code cannot live with, such as one that drops what it reads. First expand in one
   * migration, run the code that needs only the new form everywhere, and contract in a later one that says this. From then on every process
   * that does not know the migration ends at its start.
   */
  breaking?: boolean;
}
