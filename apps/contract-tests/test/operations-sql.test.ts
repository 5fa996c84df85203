import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DatabaseService, databaseServices, repositoryRoot } from '@scheduling/stack';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';

const document = readFileSync(join(repositoryRoot, 'docs/operations.md'), 'utf8');

interface Queries {
  text: string;
  service: DatabaseService;
}

/** The former is executed by deploy/test/containers/production.test.ts. */
const forSuperusers = /CREATE ROLE|pg_database_size/;

/** What the document has an operator execute in a database: its blocks of SQL, and the queries in its sentences. */
const queries: Queries[] = [...document.matchAll(/^ *```sql\n(.*?)^ *```$|`(SELECT [^`]+ FROM [^`]+)`/gms)]
  .map(({ index, 1: block, 2: inSentence }) => ({
    text: (block ?? inSentence)!.replaceAll(/\s+/g, ' ').trim(),
    service: databaseBefore(index),
  }))
  .filter(({ text }) => !forSuperusers.test(text));

/** Where nothing else is said, the query is for any of them. */
function databaseBefore(index: number): DatabaseService {
  const section = document.slice(document.lastIndexOf('\n#', index), index);
  const named = [...section.matchAll(/(\w+)'s database/g)].map(([, name]) => name!);
  return databaseServices.find((service) => service === named.at(-1)) ?? 'calendar';
}

it.each(queries)('docs/operations.md: $text', async ({ text, service }) => {
  const client = new Client({ connectionString: inject('stack').databases[service] });
  await client.connect();
  try {
    await client.query('BEGIN');
    await expect(client.query(text)).resolves.toBeDefined();
  } finally {
    // Without a trace.
    await client.end();
  }
});

it('docs/operations.md has queries', () => {
  expect(queries.length).toBeGreaterThan(9);
});
