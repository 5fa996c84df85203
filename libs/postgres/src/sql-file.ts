import { type Kysely, sql } from 'kysely';
import { readFile } from 'node:fs/promises';
import type { SchemaMigration } from './migration-set.ts';

/**
 * Runs a file of functions, which begins each with `CREATE OR REPLACE FUNCTION`. The live function stands in one place, beside the use case that calls
 * it; when it changes, a new entry runs the same file again. On an empty database the older entries run today's file too, so these sets come
 * after those that make the tables.
 *
 * A function that the application calls takes one jsonb and returns one jsonb: both can gain fields, while Postgres would refuse another result
 * type (42P13) and find the running version's call ambiguous once a parameter with a default is added (42725).
 */
export function sqlFile(file: URL): SchemaMigration {
  return {
    up: async (db: Kysely<unknown>) => {
      await sql.raw(await readFile(file, 'utf8')).execute(db);
    },
  };
}
