import { createTestDatabase, testLogger } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { migrateDatabase, type MigrationSet, type SchemaMigration, sqlFiles } from '../src/index.ts';
import { readSchemaState } from '../src/schema-state.ts';

interface Version {
  release: string;
  sets: MigrationSet[];
}

const logger = testLogger('functions-test');
let folder: string;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scheduling-functions-'));
});
beforeEach(async () => {
  url = await createTestDatabase();
});
afterAll(() => rm(folder, { recursive: true }));

it('are created after the tables of their set', async () => {
  await migrate(await write({ greet: 'hello' }));
  expect(await call('greet')).toBe('hello');
});

it('are run again if their file has changed, and only those', async () => {
  await migrate(await write({ greet: 'hello', part: 'bye' }));
  await migrate(await write({ greet: 'good morning', part: 'bye' }));
  expect(await call('greet')).toBe('good morning');
  expect(await runs()).toEqual(['greet 0.2.0', 'part 0.2.0', 'greet 0.2.0']);
  await migrate(await write({ greet: 'good morning', part: 'bye' }));
  expect(await runs()).toHaveLength(3);
});

it('are run again if a change is reverted', async () => {
  for (const greet of ['hello', 'good morning', 'hello']) {
    await migrate(await write({ greet }));
    expect(await call('greet')).toBe(greet);
  }
});

it('are run again if they are back after a migration has dropped them', async () => {
  const [first, without] = [await write({ greet: 'hello' }), await write({})];
  const drop: SchemaMigration = {
    up: async (db: Kysely<unknown>) => void (await sql`DROP FUNCTION greet`.execute(db)),
  };
  const dropping = ({ sets, release }: Version): Version => ({
    release,
    sets: sets.map((set) => ({ ...set, migrations: { ...set.migrations, '0002-no-greeting': drop } })),
  });
  await migrate(first);
  await migrate(dropping(without));
  expect(await state(dropping(without))).toEqual({ missing: [], newer: [], breaking: [] });
  await migrate(dropping(first));
  expect(await call('greet')).toBe('hello');
});

it('are not run again if their file is in another folder', async () => {
  await migrate(await write({ greet: 'hello' }, { in: 'greeting' }));
  await migrate(await write({ greet: 'hello' }, { in: 'words' }));
  expect(await runs()).toEqual(['greet 0.2.0']);
});

it('are replaced together or not at all', async () => {
  await migrate(await write({ greet: 'hello', part: 'bye' }));
  await expect(migrate(await write({ greet: 'good morning', part: "it's late" }))).rejects.toThrow(/syntax error/);
  expect(await call('greet')).toBe('hello');
  expect(await runs()).toHaveLength(2);
  await migrate(await write({ greet: 'good morning', part: 'good night' }));
  expect([await call('greet'), await call('part')]).toEqual(['good morning', 'good night']);
});

it('are missing until their content has been run once', async () => {
  const [first, next] = [await write({ greet: 'hello' }), await write({ greet: 'good morning', part: 'bye' })];
  await migrate({ ...first, sets: tables });
  expect(await state(first)).toMatchObject({ missing: ['test/greet'] });
  await migrate(first);
  expect(await state(first)).toEqual({ missing: [], newer: [], breaking: [] });
  expect(await state(next)).toMatchObject({ missing: ['test/greet', 'test/part'] });
  await migrate(next);
  expect(await state(next)).toEqual({ missing: [], newer: [], breaking: [] });
  // Processes of the previous version stay ready.
  expect(await state(first)).toEqual({ missing: [], newer: [], breaking: [] });
});

it('of a newer release are left alone by an older one, whose processes work with them', async () => {
  const older = await write({ greet: 'hello' }, { release: '0.9.0' });
  const newer = await write({ greet: 'good morning', part: 'bye' }, { release: '0.10.0' });
  await migrate(older);
  await migrate(newer);
  await migrate(older);
  expect(await call('greet')).toBe('good morning');
  expect(await state(older)).toEqual({ missing: [], newer: ['test/greet', 'test/part'], breaking: [] });
  expect(await state(newer)).toEqual({ missing: [], newer: [], breaking: [] });
  // So a fix needs a higher version than any release before it.
  const fix = { greet: 'good evening', ask: 'how are you' };
  await migrate(await write(fix, { release: '0.9.1' }));
  expect([await call('greet'), await call('ask')]).toEqual(['good morning', 'how are you']);
  expect(await state(await write(fix, { release: '0.9.1' }))).toMatchObject({ missing: [] });
  await migrate(await write(fix, { release: '0.10.1' }));
  expect(await call('greet')).toBe('good evening');
});

it('that a newer release has not changed are left alone, too, because others may rely on them', async () => {
  await migrate(await write({ greet: 'hello', part: 'bye' }, { release: '0.1.0' }));
  await migrate(await write({ greet: 'good morning', part: 'bye' }, { release: '0.2.0' }));
  const fix = await write({ greet: 'hello', part: 'good night' }, { release: '0.1.1' });
  await migrate(fix);
  expect(await call('part')).toBe('bye');
  expect(await state(fix)).toEqual({ missing: [], newer: ['test/greet', 'test/part'], breaking: [] });
});

it('of a pre-release are replaced by the release', async () => {
  await migrate(await write({ greet: 'hello' }, { release: '1.0.0-rc.1' }));
  await migrate(await write({ greet: 'good morning' }, { release: '1.0.0' }));
  expect(await call('greet')).toBe('good morning');
});

const tables: MigrationSet[] = [
  {
    name: 'test',
    migrations: {
      '0001-thing': { up: async (db: Kysely<unknown>) => void (await sql`CREATE TABLE thing (name text)`.execute(db)) },
    },
  },
];

/** A version of the code whose functions return these texts. */
async function write(texts: Record<string, string>, version: { release?: string; in?: string } = {}): Promise<Version> {
  const base = await mkdtemp(join(folder, 'version-'));
  const paths = Object.keys(texts).map((name) => join(version.in ?? '.', `${name}.sql`));
  await mkdir(join(base, version.in ?? '.'), { recursive: true });
  for (const [index, [name, text]] of Object.entries(texts).entries()) {
    await writeFile(
      join(base, paths[index]!),
      `CREATE OR REPLACE FUNCTION ${name}(place thing DEFAULT NULL) RETURNS text LANGUAGE sql AS $$ SELECT '${text}' $$`,
    );
  }
  const functions = sqlFiles(pathToFileURL(join(base, 'migrate.ts')).href, paths);
  return { release: version.release ?? '0.2.0', sets: tables.map((set) => ({ ...set, functions })) };
}

function migrate({ sets, release }: Version): Promise<void> {
  return migrateDatabase({ url, sets, release, logger });
}

function state({ sets, release }: Version) {
  return withClient((client) => readSchemaState(client, sets, release));
}

async function call(name: string): Promise<unknown> {
  return (await withClient((client) => client.query<{ text: string }>(`SELECT ${name}() AS text`))).rows[0]?.text;
}

async function runs(): Promise<string[]> {
  const { rows } = await withClient((client) =>
    client.query<{ run: string }>(`SELECT name || ' ' || release AS run FROM function_migration ORDER BY id`),
  );
  return rows.map(({ run }) => run);
}

async function withClient<Result>(use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
