import type { ClientBase, QueryResultRow } from 'pg';
import { compareFunctions, type FunctionRun, ownRelease } from './function-history.ts';
import { isDated } from './migration-order.ts';
import type { MigrationSet } from './migration-set.ts';

/** How a database's schema differs from the one this code expects. Migrations and functions are named `set/name`. */
export interface SchemaState {
  /** Own migrations and functions that have not run: the schema is older than this code needs. */
  missing: string[];
  /** Migrations and functions of a newer version. */
  newer: string[];
  /** Those of them with which this code cannot work. */
  breaking: string[];
}

/** Compares the histories in the database with the migrations and functions of this code. */
export async function readSchemaState(
  client: Pick<ClientBase, 'query'>,
  sets: readonly MigrationSet[],
  release = ownRelease,
): Promise<SchemaState> {
  const named = (set: string, names: Iterable<string>): string[] => [...names].map((name) => `${set}/${name}`);
  const runs = await readRows<FunctionRun>(client, 'function_migration');
  const functions = sets.map((set) => ({ set: set.name, ...compareFunctions(set, runs, release) }));
  const executed = new Set<string>();
  for (const { name: set, migrations } of sets)
    for (const { name } of await readRows<{ name: string }>(client, `${set}_migration`))
      if (name in migrations || !isDated(name)) executed.add(`${set}/${name}`);
  const known = new Set(sets.flatMap(({ name: set, migrations }) => named(set, Object.keys(migrations))));
  const breaking = await readRows<{ set_name: string; name: string }>(client, 'breaking_migration');
  return {
    missing: [...known.difference(executed), ...functions.flatMap(({ set, missing }) => named(set, missing))],
    newer: [...executed.difference(known), ...functions.flatMap(({ set, newer }) => named(set, newer))],
    breaking: breaking.map(({ set_name: set, name }) => `${set}/${name}`).filter((name) => !known.has(name)),
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
async function readRows<Row extends QueryResultRow>(client: Pick<ClientBase, 'query'>, table: string): Promise<Row[]> {
  const { rows } = await client.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
    `"${table}"`,
  ]);
  return rows[0]?.there === true ? (await client.query<Row>(`SELECT * FROM "${table}"`)).rows : [];
}
