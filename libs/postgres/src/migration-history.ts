import { type Kysely, sql, type Transaction } from 'kysely';
import type { MigrationSet } from './migration-set.ts';

/**
 * Returns the names of the migrations of a set that have run, those of newer versions included. The migration lock
 * makes it safe to create the table here.
 */
export async function openHistory(db: Kysely<unknown>, set: string): Promise<Set<string>> {
  await sql`CREATE TABLE IF NOT EXISTS ${historyOf(set)} (name varchar(255) PRIMARY KEY, "timestamp" varchar(255) NOT NULL)`.execute(
    db,
  );
  const { rows } = await sql<{ name: string }>`SELECT name FROM ${historyOf(set)}`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

export async function recordMigration(
  tx: Transaction<unknown>,
  { name: set, migrations }: MigrationSet,
  name: string,
): Promise<void> {
  await sql`
    INSERT INTO ${historyOf(set)} (name, "timestamp")
    VALUES (${name}, to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))`.execute(tx);
  if (migrations[name]?.breaking === true) await recordBreaking(tx, set, name);
}

async function recordBreaking(tx: Transaction<unknown>, set: string, name: string): Promise<void> {
  await sql`CREATE TABLE IF NOT EXISTS breaking_migration (set_name text NOT NULL, name text NOT NULL, PRIMARY KEY (set_name, name))`.execute(
    tx,
  );
  await sql`INSERT INTO breaking_migration (set_name, name) VALUES (${set}, ${name})`.execute(tx);
}

function historyOf(set: string) {
  return sql.table(`${set}_migration`);
}
