import { createDatabase, type Database } from '@scheduling/postgres';
import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateIdentityDatabase } from '../src/db/migrate.ts';
import type { IdentitySchema } from '../src/db/schema.ts';
import { hasEmail, hasUsername } from '../src/user/login-names.ts';

let database: Database<IdentitySchema>;
beforeAll(async () => {
  const [url, logger] = [await createTestDatabase(), testLogger('username-test')];
  await migrateIdentityDatabase(url, logger);
  database = createDatabase<IdentitySchema>({ url, applicationName: 'test', logger, ...longTimeout });
});
afterAll(() => database[Symbol.asyncDispose]());

/** So many at once that a statement is far from the time limit of statements, also on a busy machine. */
const atOnce = 10_000;

async function read(usernames: string[]): Promise<string[]> {
  const { rows } = await sql<{ form: string }>`
    SELECT username_as_read(username) AS form
      FROM unnest(${usernames.slice(0, atOnce)}::text[]) WITH ORDINALITY AS given (username, place) ORDER BY place`.execute(
    database.kysely,
  );
  const forms = rows.map(({ form }) => form);
  return usernames.length <= atOnce ? forms : [...forms, ...(await read(usernames.slice(atOnce)))];
}

/** Of all planes but those of Han characters and of private use. */
const characters = [...range(1, 0xd7ff), ...range(0xe000, 0x1ffff), ...range(0xe0000, 0xe0fff)];

function range(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => String.fromCodePoint(first + index));
}

/** The same rule in other words, by what Node knows of Unicode. */
function asRead(username: string): string {
  const visible = username
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}|[\uFFF9-\uFFFB]|[\u{13430}-\u{13442}]|\u{16FE4}|\u{1D159}/gu, '');
  const spaced = visible.replace(/[\p{White_Space}\u2800]+/gu, ' ').replace(/^ | $/g, '');
  return spaced
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFKC')
    .replace(/[ς\u1C80-\u1C88]/gu, (letter) => letter.toUpperCase().toLowerCase());
}

describe('users', () => {
  it.each([
    ['app_user_by_address', 'app_user_email_key', hasEmail],
    ['app_user_by_username', 'app_user_username_key', hasUsername],
  ])('are found by %s and %s, before the table is analysed, too', async (first, second, condition) => {
    const { kysely } = database;
    await kysely
      .insertInto('crm')
      .values({ crmId: 'one' })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await sql`
      INSERT INTO app_user (crm_id, id, email, email_key, email_generated, username, username_key, last_name, language)
      SELECT 'one', uuidv7(), name || '@one.example', name || '@one.example', false, name, name, 'L', 'en' FROM (SELECT ${first} || i AS name FROM generate_series(1, 5000) AS i) AS names`.execute(
      kysely,
    );
    const crm = await kysely.selectFrom('crm').selectAll().executeTakeFirstOrThrow();
    const { rows } =
      await sql`EXPLAIN SELECT id FROM app_user WHERE ${condition(crm, 'nobody@one.example')} LIMIT 1`.execute(kysely);
    for (const index of [first, second]) expect(JSON.stringify(rows)).toContain(index);
  });
});

describe('username_as_read', () => {
  it.each([
    ['Ann', 'aNN'],
    ['ÄÖÜ', 'a\u0308öü'],
    ['ΟΔΟΣ', 'οδος'],
    ['qς', 'qσ'],
    ['ПОЧТА', 'почта'],
    ['Ａｎｎ', 'ann'],
    ['ﬁnn', 'Finn'],
    ['a\u200B\u0308', 'ä'],
    ['İlker', 'i\u0307lker'],
    ['ann', 'ann\uFFF9'],
    ['👨\u200D👩', '👨👩'],
    ['в\u1C82да', 'вода'],
    ['ann\u{13441}', 'ann'],
  ])('is the same for %j and %j', async (one, other) => {
    const [first, second] = await read([one, other]);
    expect(second).toBe(first);
  });

  it('differs for different letters, and with and without a space', async () => {
    const names = ['straße', 'strasse', 'i', 'ı', 'ann x', 'annx', 'ann', 'ａｎn2', 'аnn'];
    expect(new Set(await read(names)).size).toBe(names.length);
  });

  it('does not count characters that nobody sees, wherever they stand', async () => {
    const invisible = characters.filter((character) => /\p{Default_Ignorable_Code_Point}/u.test(character));
    expect(invisible.length).toBeGreaterThan(4_000);
    const names = invisible.flatMap((character) => [
      `${character}ann x`,
      `an${character}n x`,
      `ann x${character}`,
      `ann${character} ${character}x`,
    ]);
    expect(new Set(await read(names))).toEqual(new Set(['ann x']));
  });

  it('does not distinguish kinds of white space, nor count it at the ends or more than once', async () => {
    const spaces = characters.filter((character) => /[\p{White_Space}\u2800]/u.test(character));
    expect(spaces.length).toBeGreaterThan(20);
    const names = spaces.flatMap((space) => [
      `ann x${space}`,
      `${space}ann x`,
      `ann${space}x`,
      `ann ${space}${space}x`,
    ]);
    expect(new Set(await read(names))).toEqual(new Set(['ann x']));
  });

  it('is what Node says for every character', async () => {
    const { rows } = await sql<{
      character: string;
    }>`SELECT character FROM unnest(${characters}::text[]) AS character WHERE unicode_assigned(character)`.execute(
      database.kysely,
    );
    const names = rows.flatMap(({ character }) => [`a${character}b`, `${character}b`, `a${character}`]);
    expect(names.length).toBeGreaterThan(270_000);
    expect(await read(names)).toEqual(names.map(asRead));
  }, 60_000);

  it('fails for no text, is what Node says, and of itself is itself', async () => {
    const part = fc.oneof(
      fc.constantFrom(
        'İ',
        'I\u0307',
        'Σ',
        'σ',
        'Å',
        '¨',
        'ﬁ',
        'ẞ',
        'ﾡ',
        'e',
        'x',
        ' ',
        '\u0301',
        '\u0345',
        '①',
        '\u200B',
        '\u00A0',
        '\u3164',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }).map((text) => text.replaceAll('\0', '')),
    );
    const names = fc.array(
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join('')),
      { maxLength: 50 },
    );
    const property = fc.asyncProperty(names, async (all) => {
      const forms = await read(all);
      expect(await read(forms)).toEqual(forms);
      const { rows } = await sql<{
        known: boolean;
      }>`SELECT unicode_assigned(name) AS known FROM unnest(${all}::text[]) WITH ORDINALITY AS given (name, place) ORDER BY place`.execute(
        database.kysely,
      );
      const known = <T>(values: T[]) => values.filter((_, index) => rows[index]!.known);
      expect(known(forms)).toEqual(known(all.map(asRead)));
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
