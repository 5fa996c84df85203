import { FatalError, type Logger } from '@scheduling/runtime';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { Pool } from 'pg';
import type { MigrationSet, SchemaMigration } from './migration-set.ts';
import { describeBreaking, readSchemaState } from './schema-state.ts';

/**
 * Brings a database up to date. Safe to run concurrently: the second run waits for the first. Migrations of a newer version are left alone,
 * so that this can run again after a rollback.
 *
 * @throws FatalError if a newer version has run a breaking migration
 */
export async function migrateDatabase(options: { url: string; sets: readonly MigrationSet[]; logger: Logger }): Promise<void> {
  const { sets, logger } = options;
  const pool = new Pool({ connectionString: options.url, max: 2 });
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const { breaking } = await readSchemaState(pool, sets);
    if (breaking.length > 0) throw new FatalError(describeBreaking(breaking));
    for (const set of sets) {
      const migrator = new Migrator({
        db: kysely,
        provider: { getMigrations: async () => ({ ...(await newerMigrations(kysely, set)), ...ownMigrations(set) }) },
        migrationTableName: `${set.name}_migration`,
        migrationLockTableName: `${set.name}_migration_lock`,
      });
      const { error, results } = await migrator.migrateToLatest();
      if (error !== undefined) throw error;
      for (const result of results ?? []) logger.info({ set: set.name, migration: result.migrationName }, 'migrated');
    }
  } finally {
    await kysely.destroy();
  }
}

/** Migrations that only a newer version knows. They have run and are not run again; without them the history would count as corrupted. */
async function newerMigrations(kysely: Kysely<unknown>, set: MigrationSet): Promise<Record<string, Migration>> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM ${sql.table(`${set.name}_migration`)}`.execute(kysely);
  return Object.fromEntries(rows.map(({ name }) => [name, { up: () => Promise.reject(new Error(`${name} is not known here`)) }]));
}

function ownMigrations(set: MigrationSet): Record<string, Migration> {
  return Object.fromEntries(
    Object.entries(set.migrations).map(([name, migration]) => [name, migration.breaking === true ? recordedMigration(set.name, name, migration) : migration]),
  );
}

/** The record is part of the migration's transaction; the migration lock makes it safe to create the table here. */
function recordedMigration(setName: string, name: string, migration: SchemaMigration): Migration {
  return {
    up: async (db: Kysely<unknown>) => {
      await migration.up(db);
      await sql`CREATE TABLE IF NOT EXISTS breaking_migration (set_name text NOT NULL, name text NOT NULL, PRIMARY KEY (set_name, name))`.execute(db);
      await sql`INSERT INTO breaking_migration (set_name, name) VALUES (${setName}, ${name})`.execute(db);
    },
  };
}
