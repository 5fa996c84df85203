import type { Migration } from 'kysely/migration';

/** Migrations with a separate history table, so that those of a library and of a service are numbered independently. */
export interface MigrationSet {
  /** Prefix of the history table, such as `messaging`. */
  name: string;
  /** By name; run in the order of the names, never edited once landed. */
  migrations: Record<string, SchemaMigration>;
}

export interface SchemaMigration extends Migration {
  /**
   * `export const breaking = true` in a migration with which older code cannot work, such as one that drops what it reads. First expand in one
   * migration, deploy the code that needs only the new form everywhere, and contract in a later one with this flag. From then on every process
   * that does not know the migration exits.
   */
  breaking?: boolean;
}
