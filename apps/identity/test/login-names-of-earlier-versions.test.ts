import { createDatabase, migrateDatabase } from '@scheduling/postgres';
import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { migrateIdentityDatabase, migrationSets } from '../src/db/migrate.ts';
import type { IdentitySchema } from '../src/db/schema.ts';

const logger = testLogger('login-names-test');

/** Users as an earlier version stored them, in this order, and what the migrations since then make of their keys. */
async function migrateUsers(before: string, users: { crmId?: string; username?: string; usernameKey?: string; email?: string; emailKey?: string; emailDerivedFrom?: string }[]) {
  const url = await createTestDatabase();
  const sets = migrationSets.map((set) => (set.name === 'identity' ? { ...set, migrations: Object.fromEntries(Object.entries(set.migrations).filter(([name]) => name < before)) } : set));
  await migrateDatabase({ url, sets, logger });
  await using database = createDatabase<IdentitySchema>({ url, applicationName: 'test', logger, ...longTimeout });
  await database.kysely.insertInto('crm').values([{ crmId: 'one' }, { crmId: 'two' }, { crmId: 'sandbox', sandbox: true }]).execute();
  for (const [index, user] of users.entries()) {
    const own = { crmId: 'one', email: `${index}@one.example`, emailKey: `${index}@one.example`, username: `${index}`, usernameKey: `${index}` };
    await database.kysely.insertInto('appUser').values({ ...own, emailGenerated: false, lastName: 'L', language: 'en', ...user }).execute();
  }
  await migrateIdentityDatabase(url, logger);
  return await database.kysely.selectFrom('appUser').selectAll().orderBy('id').execute();
}

it('get the key of what a person sees, unless somebody else has it: the plain name first, then the oldest', async () => {
  const users = await migrateUsers('2026-12-10', [
    { username: 'Ann ', usernameKey: 'ann ' },
    { crmId: 'two', username: 'Ann', usernameKey: 'ann' },
    { username: 'Bob\u200B', usernameKey: 'bob\u200B' },
    { crmId: 'two', username: ' Bob', usernameKey: ' bob' },
    { username: 'Änne\u00A0 X', usernameKey: 'änne\u00A0 x' },
    { crmId: 'sandbox', username: 'ann ', usernameKey: 'sandbox\nann ' },
    { username: 'plain name', usernameKey: 'plain name' },
  ]);
  expect(users.map(({ username, usernameKey }) => [username, usernameKey])).toEqual([
    ['Ann ', 'ann '],
    ['Ann', 'ann'],
    ['Bob\u200B', 'bob'],
    [' Bob', ' bob'],
    ['Änne\u00A0 X', 'änne x'],
    ['ann ', 'sandbox\nann'],
    ['plain name', 'plain name'],
  ]);
});

it('get the key of their mailbox, unless somebody else has it', async () => {
  const users = await migrateUsers('2026-12-11', [
    { email: 'Ann@Bücher.example', emailKey: 'ann@bücher.example' },
    { email: 'ann1@bücher.example', emailKey: 'ann1@bücher.example', emailDerivedFrom: 'ann@bücher.example' },
    { crmId: 'two', email: 'ann@XN--bcher-kva.example', emailKey: 'ann@xn--bcher-kva.example' },
    { email: 'ünal@Straße.example', emailKey: 'ünal@straße.example' },
    { crmId: 'sandbox', email: 'ann@bücher.example', emailKey: 'sandbox\nann@bücher.example' },
    { email: 'plain@one.example', emailKey: 'plain@one.example' },
  ]);
  expect(users.map(({ email, emailKey, emailDerivedFrom }) => [email, emailKey, emailDerivedFrom])).toEqual([
    ['Ann@Bücher.example', 'ann@bücher.example', null],
    ['ann1@bücher.example', 'ann1@xn--bcher-kva.example', 'ann@xn--bcher-kva.example'],
    ['ann@XN--bcher-kva.example', 'ann@xn--bcher-kva.example', null],
    ['ünal@Straße.example', 'ünal@xn--strae-oqa.example', null],
    ['ann@bücher.example', 'sandbox\nann@xn--bcher-kva.example', null],
    ['plain@one.example', 'plain@one.example', null],
  ]);
});
