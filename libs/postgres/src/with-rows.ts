import { type Insertable, type InsertQueryBuilder, type InsertResult, sql } from 'kysely';

/**
 * Adds many rows to an insert, which must have the same columns, as JSON: one parameter for the values in which the
 * rows differ, one for those that they share. A statement with a parameter for every value takes tens of milliseconds
 * of this process for a thousand rows, in which it answers nobody.
 *
 * @param options.json columns whose values are JSON already, as text
 */
export function withRows<Schema, Table extends keyof Schema>(
  insert: InsertQueryBuilder<Schema, Table, InsertResult>,
  rows: readonly Insertable<NoInfer<Schema>[Table]>[],
  options: { json?: (keyof Insertable<NoInfer<Schema>[Table]>)[] } = {},
): InsertQueryBuilder<Schema, Table, InsertResult> {
  const json = new Set<string>(options.json as string[] | undefined);
  const records: readonly Record<string, unknown>[] = rows;
  const first = records[0]!;
  const columns = Object.keys(first).map((name) => ({
    name,
    column: toSnakeCase(name),
    isJson: json.has(name),
    isShared: records.every((row) => row[name] === first[name]),
  }));
  const shared = columns.filter(({ isShared }) => isShared);
  const own = columns.filter(({ isShared }) => !isShared);
  const values = sql.join(columns.map(({ name, isShared }) => sql.ref(`${isShared ? 'shared' : 'own'}.${name}`)));
  const record = sql.table(insert.toOperationNode().into!.table.identifier.name);
  const selected = sql`
    SELECT ${values}
      FROM jsonb_populate_record(NULL::${record}, ${JSON.stringify(toRecord(first, shared))}::jsonb) AS shared,
           jsonb_populate_recordset(NULL::${record}, ${JSON.stringify(records.map((row) => toRecord(row, own)))}::jsonb) AS own`;
  return insert.columns(columns.map(({ name }) => name) as never[]).expression(selected as never);
}

interface Column {
  name: string;
  column: string;
  isJson: boolean;
}

function toRecord(row: Record<string, unknown>, columns: Column[]): Record<string, unknown> {
  return Object.fromEntries(columns.map(({ name, column, isJson }) => [column, toJson(row[name], isJson)]));
}

/** A value as Postgres reads it from JSON. Dates become text by themselves. */
function toJson(value: unknown, isJson: boolean): unknown {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return isJson && typeof value === 'string' ? (JSON.parse(value) as unknown) : value;
}

/** As the database's plugin does it for identifiers. */
function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
