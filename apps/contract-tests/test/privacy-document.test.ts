import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { databaseServices, repositoryRoot } from '@scheduling/stack';
import { query } from '@scheduling/test-stack/databases';

/** Tables of every service, in the first table of a section; the last section applies to all of them. */
async function documentedColumns(): Promise<Set<string>> {
  const text = await readFile(join(repositoryRoot, 'docs/privacy.md'), 'utf8');
  const columns = new Set<string>();
  let section = '';
  for (const line of text.split('\n')) {
    section = /^### (.+)$/.exec(line)?.[1] ?? section;
    const [, tables, names] = /^\| ((?:`\w+`(?:, )?)+) \| (.+?) \| (?:yes|no) \|/.exec(line) ?? [];
    if (tables === undefined || names === undefined) continue;
    const services = section === 'Every service' ? databaseServices : [section];
    for (const [, table] of tables.matchAll(/`(\w+)`/g))
      for (const [, name] of names.matchAll(/`(\w+)`/g))
        for (const service of services) columns.add(`${service}.${table}.${name}`);
  }
  return columns;
}

/** Every column that can contain text, except those of the migration histories. */
async function existingColumns(): Promise<Set<string>> {
  const columns = new Set<string>();
  for (const service of databaseServices) {
    const rows = await query<{ table_name: string; column_name: string }>(
      service,
      `SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name NOT LIKE '%\\_migration%'
          AND data_type IN ('text', 'character varying', 'character', 'json', 'jsonb', 'bytea', 'ARRAY', 'xml')`,
    );
    for (const row of rows) columns.add(`${service}.${row.table_name}.${row.column_name}`);
  }
  return columns;
}

it('states for every column that can contain text whether it is personal data, and for no other', async () => {
  const [documented, existing] = [await documentedColumns(), await existingColumns()];
  expect([...existing].filter((column) => !documented.has(column)).toSorted()).toEqual([]);
  expect([...documented].filter((column) => !existing.has(column)).toSorted()).toEqual([]);
});
