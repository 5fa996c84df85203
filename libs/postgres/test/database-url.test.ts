import { readDatabaseUrl, readEnvironment } from '@scheduling/runtime';
import { createTestDatabase, forwardFromIpv6, hasIpv6, testLogger } from '@scheduling/testing';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import { createDatabase } from '../src/index.ts';

const read = (url: string): string =>
  readEnvironment({ DATABASE_URL: url }, (reader) => readDatabaseUrl(reader, 'DATABASE_URL'));

it.each([
  ['postgres://ann:s3cret@db.example.com:5433/calendar', { host: 'db.example.com', port: 5_433, user: 'ann' }],
  ['postgres://ann:s3c,ret@db/calendar', { host: 'db', port: 5_432, password: 's3c,ret' }],
  ['postgres://ann:s3cret@[2001:db8::5]:5433/calendar', { host: '2001:db8::5', port: 5_433 }],
  ['postgres:///calendar?host=/run/postgresql', { host: '/run/postgresql', database: 'calendar' }],
  ['postgres://db/calendar?sslmode=require&uselibpqcompat=true', { ssl: { rejectUnauthorized: false } }],
  ['postgres://db/calendar?ssl=true&sslnegotiation=direct', { ssl: true }],
])('pg understands the DATABASE_URL %s', (url, expected) => {
  const { host, port, user, password, database, ssl } = new Client({ connectionString: read(url) });
  expect({ host, port, user, password, database, ssl }).toMatchObject(expected);
});

const alternatives = {
  ssl: ['', 'true', 'false', '1', '0', 'yes'],
  sslmode: ['', 'disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'],
  sslrootcert: ['', import.meta.filename],
  sslnegotiation: ['', 'postgres', 'direct', 'dirct'],
  uselibpqcompat: ['', 'true', 'false'],
};
const combinations = Object.entries(alternatives).reduce<[string, string][][]>(
  (chosen, [name, values]) =>
    chosen.flatMap((before) => values.map((value): [string, string][] => [...before, [name, value]])),
  [[]],
);

it('with whatever parameters of TLS, pg can use each DATABASE_URL that is accepted', () => {
  const used = combinations.flatMap((combination) => {
    const parameters = new URLSearchParams(combination.filter(([, value]) => value !== ''));
    try {
      return [read(`postgres://db/calendar?${String(parameters)}`)];
    } catch {
      return [];
    }
  });
  for (const url of used) expect(() => new Client({ connectionString: url }), url).not.toThrow();
  expect(used.length).toBeGreaterThan(combinations.length / 5);
});

it('an address of IPv6 leads to Postgres', async ({ skip }) => {
  skip(!hasIpv6(), 'this machine has no IPv6');
  const url = new URL(await createTestDatabase());
  await using forwarding = await forwardFromIpv6(Number(url.port));
  url.host = `[::1]:${forwarding.port}`;
  const logger = testLogger('database-url-test');
  await using database = createDatabase({ url: read(url.href), applicationName: 'test', logger });
  await expect(database.ping()).resolves.toBeUndefined();
});
