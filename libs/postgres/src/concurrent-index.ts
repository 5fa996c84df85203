import { type Kysely, sql } from 'kysely';
import type { SchemaMigration } from './migration-set.ts';

/**
 * Builds an index while others write to the table. An attempt that failed leaves an invalid index with the name, which
 * would be written but never read: it is dropped first. One that was completed, but not recorded, is kept.
 *
 * @param definition what follows ON: the table, the columns in parentheses, and a condition
 * @param kind a unique index fails if there are rows that violate it
 */
export function concurrentIndex(
  name: string,
  definition: string,
  kind: 'INDEX' | 'UNIQUE INDEX' = 'INDEX',
): SchemaMigration {
  return {
    withoutTransaction: true,
    up: async (db: Kysely<unknown>) => {
      const invalid =
        await sql`SELECT FROM pg_index WHERE indexrelid = to_regclass(${name}) AND NOT indisvalid`.execute(db);
      if (invalid.rows.length > 0) await sql`DROP INDEX CONCURRENTLY ${sql.ref(name)}`.execute(db);
      await sql`CREATE ${sql.raw(kind)} CONCURRENTLY IF NOT EXISTS ${sql.ref(name)} ON ${sql.raw(definition)}`.execute(
        db,
      );
    },
  };
}

/** Drops an index while others use the table. */
export function dropIndex(name: string): SchemaMigration {
  return {
    withoutTransaction: true,
    up: async (db: Kysely<unknown>) => void (await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.ref(name)}`.execute(db)),
  };
}
