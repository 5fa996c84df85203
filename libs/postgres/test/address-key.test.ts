import { addressKey } from '@scheduling/runtime';
import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import fc from 'fast-check';
import { sql } from 'kysely';
import { domainToASCII } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressMigrations } from '../src/address-key.ts';
import { createDatabase, type Database } from '../src/database.ts';
import { migrateDatabase } from '../src/migrate.ts';

let database: Database<unknown>;
beforeAll(async () => {
  const [url, logger] = [await createTestDatabase(), testLogger('address-key-test')];
  await migrateDatabase({ url, sets: [addressMigrations], logger });
  database = createDatabase<unknown>({ url, applicationName: 'test', logger, ...longTimeout });
});
afterAll(() => database[Symbol.asyncDispose]());

async function keysOf(addresses: string[]): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    SELECT address_key(address) AS key FROM unnest(${addresses}::text[]) WITH ORDINALITY AS given (address, place) ORDER BY place`.execute(
    database.kysely,
  );
  return rows.map(({ key }) => key);
}

/** Of which each is equal to the one at the same place, and to no other. */
function groups(keys: string[]): number[] {
  return keys.map((key) => keys.indexOf(key));
}

describe('address_key', () => {
  it.each([
    ['Ann@Example.com', 'ann@example.com'],
    ['JU\u0308RGEN@XN--BCHER-KVA.Example', 'jürgen@bücher.example'],
    ['xn--bcher-kva@b.example', 'xn--bcher-kva@b.example'],
    ['an\uFE0Fn@b.example', 'ann@b.example'],
    ['', ''],
    ['Nobody', 'nobody'],
    ['a@b@Bücher', 'a@b@bücher'],
    ['ΝΊΚΟΣ@b.example', 'νίκοσ@b.example'],
    ['νίκος@b.example', 'νίκοσ@b.example'],
    ['İlker@b.example', 'i\u0307lker@b.example'],
    ['J\u030Cx@b.example', 'ǰx@b.example'],
  ])('of %j is %j', async (address, key) => {
    expect(await keysOf([address, key])).toEqual([key, key]);
  });

  it('is the same for the letters that are the same in the name of a host, and different for others', async () => {
    const letters = Array.from({ length: 0x20000 }, (_, code) =>
      code >= 0xd800 && code <= 0xdfff ? '' : String.fromCodePoint(code),
    );
    const changing = letters.filter(
      (letter) =>
        /[\p{L}\p{N}\p{M}]/u.test(letter) &&
        (letter.normalize('NFKC') !== letter || letter.toLowerCase() !== letter || letter.toUpperCase() !== letter),
    );
    const { rows } = await sql<{
      letter: string;
    }>`SELECT letter FROM unnest(${changing}::text[]) AS letter WHERE unicode_assigned(letter)`.execute(
      database.kysely,
    );
    const domains = rows.map(({ letter }) => `a${letter}b.example`).filter((domain) => domainToASCII(domain) !== '');
    expect(domains.length).toBeGreaterThan(4_000);
    const names = domains.map(domainToASCII);
    const keys = await keysOf([...domains, ...names].map((domain) => `x@${domain}`));
    expect(keys.slice(0, domains.length)).toEqual(keys.slice(domains.length));
    expect(groups(keys)).toEqual(groups([...names, ...names]));
  });

  it('of the local part is that of Node for every letter with another form, alone and within a word', async () => {
    const letters = Array.from({ length: 0x20000 }, (_, code) =>
      code >= 0xd800 && code <= 0xdfff ? '' : String.fromCodePoint(code),
    );
    const changing = letters.filter(
      (letter) =>
        /[\p{L}\p{N}\p{M}]/u.test(letter) &&
        (letter.normalize('NFC') !== letter || letter.toLowerCase() !== letter || letter.toUpperCase() !== letter),
    );
    const forms = changing.flatMap((letter) => [
      letter,
      letter.toUpperCase(),
      letter.toLowerCase(),
      letter.normalize('NFD'),
    ]);
    // Node knows some that are newer.
    const { rows } = await sql<{
      form: string;
    }>`SELECT form FROM unnest(${forms}::text[]) AS form WHERE unicode_assigned(form)`.execute(database.kysely);
    const addresses = rows.flatMap(({ form }) => [`${form}@b.example`, `a${form}b@b.example`, `a${form}@b.example`]);
    expect(addresses.length).toBeGreaterThan(30_000);
    expect(await keysOf(addresses)).toEqual(addresses.map(addressKey));
  });

  it('is the same for all forms of a domain, however they are mixed, and only for them', async () => {
    const letter = fc.constantFrom(...Array.from('abzA09-äößÅçñαΣςΩжЯיא日本語ｶﾞ가ﬁＡİı\u0308\u00AD𝒶𐐀'));
    const label = fc.array(letter, { minLength: 1, maxLength: 6 }).map((letters) => letters.join(''));
    const form = fc.constantFrom<(label: string) => string>(
      (text) => text,
      (text) => text.toUpperCase(),
      (text) => text.normalize('NFD'),
      (text) => domainToASCII(text) || text,
      (text) => domainToASCII(text).toUpperCase() || text,
    );
    const forms = fc.array(fc.array(form, { minLength: 2, maxLength: 2 }), { minLength: 4, maxLength: 4 });
    const domain = fc.tuple(fc.array(label, { minLength: 2, maxLength: 2 }), forms);
    const property = fc.asyncProperty(fc.array(domain, { minLength: 20, maxLength: 20 }), async (domains) => {
      const all = domains.flatMap(([labels, ways]) =>
        ways.map((way) => `${labels.map((text, index) => way[index]!(text)).join('.')}.example`),
      );
      const addresses = all.filter((name) => domainToASCII(name) !== '').map((name) => `Ann@${name}`);
      expect(groups(await keysOf(addresses))).toEqual(groups(addresses.map(addressKey)));
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('fails for no text, and is its own key', async () => {
    const character = fc.oneof(
      fc.constantFrom('@', '.', '-', 'xn--', '.xn--', '@xn--', '9', 'z', 'a'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }).map((text) => text.replaceAll('\0', '')),
    );
    const texts = fc.array(
      fc.array(character, { maxLength: 12 }).map((parts) => parts.join('')),
      { maxLength: 50 },
    );
    await fc.assert(
      fc.asyncProperty(texts, async (all) => {
        const keys = await keysOf(all);
        expect(await keysOf(keys)).toEqual(keys);
      }),
      { numRuns: 200 },
    );
  });
});
