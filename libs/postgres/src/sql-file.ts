import { type Kysely, sql } from 'kysely';
import { readFile } from 'node:fs/promises';
import type { SchemaMigration } from './migration-set.ts';

/**
 * Runs a file of functions, each of which begins with `CREATE OR REPLACE FUNCTION`. The current function is in one
 * place, next to the use case that calls it; when it changes, a new entry runs the same file again. On an empty
 * database the older entries run the current file too, so these sets come after those that create the tables.
 *
 * A function that the application calls takes one jsonb and returns one jsonb: both can gain fields, while Postgres
 * would reject a different result type (42P13), and would find the running version's call ambiguous if a parameter with
 * a default were added (42725). A function that only reads takes one jsonb and returns rows, whose texts need not be
 * converted to jsonb and back; another column needs a function with another name.
 */
export function sqlFile(file: URL): SchemaMigration {
  return {
    up: async (db: Kysely<unknown>) => {
      await sql.raw(await readFile(file, 'utf8')).execute(db);
    },
  };
}
