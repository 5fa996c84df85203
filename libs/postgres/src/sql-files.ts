import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A file of SQL functions, each of which begins with `CREATE OR REPLACE FUNCTION`, or of {@link frozenFiles}. */
export interface SqlFile {
  /** Of the file, without folder and extension: it may move to another folder. */
  name: string;
  text: string;
  /** Of the text; when it changes, the file is run again. */
  sha256: string;
}

/**
 * The functions of a {@link MigrationSet}. A function LANGUAGE sql comes after those that it calls, because Postgres
 * checks its body when it is created.
 *
 * A function that the application calls takes one jsonb and returns one jsonb: both can gain fields, while Postgres
 * would reject a different result type (42P13), and would find the running version's call ambiguous if a parameter with
 * a default were added (42725). A function that only reads takes one jsonb and returns rows, whose texts need not be
 * converted to jsonb and back; another column needs a function with another name.
 *
 * @param base the `import.meta.url` of the file that names them
 * @param paths relative to it
 */
export function sqlFiles(base: string, paths: readonly string[]): SqlFile[] {
  return paths.map((path) => {
    const text = readFileSync(new URL(path, base), 'utf8');
    return { name: basename(path, '.sql'), text, sha256: createHash('sha256').update(text).digest('hex') };
  });
}

/**
 * Files that are run once and never changed, as a migration: the tables of a service, and before them a function whose
 * results an index contains. The index would keep the former results, so another rule is a function with another name,
 * and an index of its own.
 */
export function frozenFiles(base: string, paths: readonly string[]): Migration {
  return {
    up: async (db: Kysely<unknown>) => {
      for (const { text } of sqlFiles(base, paths)) await sql.raw(text).execute(db);
    },
  };
}
