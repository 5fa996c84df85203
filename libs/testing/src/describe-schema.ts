import { Client } from 'pg';

/**
 * The schema of a database as SQL, in an order that depends only on its names: shows a reviewer the tables, indexes,
 * triggers and functions after all migrations. Without the migration history tables.
 */
export async function describeSchema(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ definition: string }>(tablesQuery);
    const { rows: functions } = await client.query<{ definition: string }>(functionsQuery);
    return `${[...tables, ...functions].map(({ definition }) => definition.trimEnd()).join('\n\n')}\n`;
  } finally {
    await client.end();
  }
}

const tablesQuery = `
  SELECT format(E'CREATE TABLE %I (\\n%s\\n)%s;', relname, array_to_string(columns || coalesce(constraints, '{}'), E',\\n'),
           ' WITH (' || array_to_string(reloptions, ', ') || ')')
         || coalesce(E'\\n' || array_to_string(indexes, E'\\n'), '') || coalesce(E'\\n' || array_to_string(triggers, E'\\n'), '') AS definition
    FROM pg_class AS relation
    CROSS JOIN LATERAL (
      SELECT array_agg(format('  %I %s%s%s', attname, format_type(atttypid, atttypmod),
               CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END,
               coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '')) ORDER BY attnum) AS columns
        FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
       WHERE attrelid = relation.oid AND attnum > 0 AND NOT attisdropped)
    CROSS JOIN LATERAL (
      SELECT array_agg(format('  CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) ORDER BY contype = 'p' DESC, contype, conname) AS constraints
        FROM pg_constraint WHERE conrelid = relation.oid AND contype <> 'n')
    CROSS JOIN LATERAL (
      SELECT array_agg(pg_get_indexdef(indexrelid) || ';' ORDER BY indexrelid::regclass::text) AS indexes
        FROM pg_index
       WHERE indrelid = relation.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x')))
    CROSS JOIN LATERAL (
      SELECT array_agg(pg_get_triggerdef(oid) || ';' ORDER BY tgname) AS triggers
        FROM pg_trigger WHERE tgrelid = relation.oid AND NOT tgisinternal)
   WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname !~ '_migration(_lock)?$'
   ORDER BY relname`;

const functionsQuery = `
  SELECT rtrim(pg_get_functiondef(oid), E'\\n') || ';' AS definition
    FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname, oid::regprocedure::text`;
