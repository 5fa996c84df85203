import { type Kysely, sql, type Transaction } from 'kysely';
import manifest from '../package.json' with { type: 'json' };
import type { MigrationSet } from './migration-set.ts';
import type { SqlFile } from './sql-files.ts';

/** The version of this code, such as 0.2.0. */
export const ownRelease = manifest.version;

/** That a version of a file was run, or that a file was no longer there. */
export interface FunctionRun {
  id: number;
  set_name: string;
  name: string;
  /** Null if it was no longer there. */
  sha256: string | null;
  release: string;
}

/** How the functions in a database differ from those of this code; see {@link compareFunctions}. */
export interface FunctionsState {
  /** To be run by `migrate`. */
  pending: SqlFile[];
  /** Those of them that have never been run as they are: the code cannot work yet. */
  missing: string[];
  /** No longer there, which has not been recorded. */
  removed: string[];
  /** Left as a newer release has made them. */
  newer: string[];
}

/** Returns what has been run, of all sets. The migration lock makes it safe to create the table here. */
export async function openFunctionHistory(db: Kysely<unknown>): Promise<FunctionRun[]> {
  await sql`
    CREATE TABLE IF NOT EXISTS function_migration (
      id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
      set_name text NOT NULL,
      name text NOT NULL,
      sha256 text,
      release text NOT NULL,
      run_at timestamptz NOT NULL DEFAULT now()
    )`.execute(db);
  return (await sql<FunctionRun>`SELECT * FROM function_migration`.execute(db)).rows;
}

export async function recordFunction(
  tx: Transaction<unknown>,
  set: string,
  { name, sha256 }: Pick<FunctionRun, 'name' | 'sha256'>,
  release: string,
): Promise<void> {
  await sql`
    INSERT INTO function_migration (set_name, name, sha256, release) VALUES (${set}, ${name}, ${sha256}, ${release})
  `.execute(tx);
}

/**
 * A file is pending if its last run was of another content, so one that is back as it once was, too. But once a newer
 * release has run functions, this one replaces none of them: after a rollback, processes of both may be running, and a
 * function works for the release before it, but not for the one after it.
 *
 * What has been run at some time is not missing: processes of the previous version stay ready while the next one
 * replaces their functions.
 */
export function compareFunctions(
  { name: set, functions = [] }: MigrationSet,
  runs: readonly FunctionRun[],
  release: string,
): FunctionsState {
  const own = runs.filter((run) => run.set_name === set).toSorted((a, b) => a.id - b.id);
  const last = new Map(own.map((run) => [run.name, run.sha256]));
  const files = new Map(functions.map((file) => [file.name, file.sha256]));
  const hasRun = (file: SqlFile): boolean =>
    own.some(({ name, sha256 }) => name === file.name && sha256 === file.sha256);
  const isOlder = own.some((run) => isNewer(run.release, release));
  const differing = [...last.keys()].filter((name) => last.get(name) !== (files.get(name) ?? null));
  const pending = functions.filter(({ name }) => !last.has(name) || (differing.includes(name) && !isOlder));
  return {
    pending,
    missing: pending.filter((file) => !hasRun(file)).map(({ name }) => name),
    removed: isOlder ? [] : differing.filter((name) => !files.has(name)),
    newer: isOlder ? differing : [],
  };
}

function isNewer(release: string, other: string): boolean {
  return numbersOf(release).localeCompare(numbersOf(other), 'en', { numeric: true }) > 0;
}

/** Without what follows them: a pre-release counts as its release. */
function numbersOf(release: string): string {
  return /^\d+\.\d+\.\d+/.exec(release)?.[0] ?? release;
}
