import type { ClientBase } from 'pg';
import type { MigrationSet } from './migration-set.ts';

/** How a database's schema differs from the one this code expects. Migrations are named `set/name`. */
export interface SchemaState {
  /** Own migrations that have not run: the schema is older than this code needs. */
  missing: string[];
  /** Migrations of a newer version. */
  newer: string[];
  /** Those of them with which this code cannot work. */
  breaking: string[];
}

/** Compares the histories in the database with the migrations of this code. */
export async function readSchemaState(
  client: Pick<ClientBase, 'query'>,
  sets: readonly MigrationSet[],
): Promise<SchemaState> {
  const executed = new Set<string>();
  for (const { name: set } of sets)
    for (const { name } of await readRows(client, `${set}_migration`)) executed.add(`${set}/${name}`);
  const known = new Set(
    sets.flatMap(({ name: set, migrations }) => Object.keys(migrations).map((name) => `${set}/${name}`)),
  );
  const recorded = (await readRows(client, 'breaking_migration')).map(({ set_name: set, name }) => `${set}/${name}`);
  return {
    missing: [...known.difference(executed)],
    newer: [...executed.difference(known)],
    breaking: recorded.filter((name) => !known.has(name)),
  };
}

export function describeBreaking(breaking: readonly string[]): string {
  return (
    `the database has ${breaking.join(', ')} of a newer version, which is incompatible with this version: ` +
    'run a version that includes it, or restore an earlier backup of the database'
  );
}

export function describeMissing(missing: readonly string[]): string {
  return `the database lacks ${missing.join(', ')}: run migrate`;
}

/** Empty if the table does not exist yet. */
async function readRows(client: Pick<ClientBase, 'query'>, table: string): Promise<Record<string, string>[]> {
  const { rows } = await client.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
    `"${table}"`,
  ]);
  return rows[0]?.there === true ? (await client.query<Record<string, string>>(`SELECT * FROM "${table}"`)).rows : [];
}
