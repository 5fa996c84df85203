import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readDatabaseUrl } from './database-url.ts';
import { readEnvironment } from './environment.ts';

const read = (url: string): string =>
  readEnvironment({ DATABASE_URL: url }, (reader) => readDatabaseUrl(reader, 'DATABASE_URL'));
const file = encodeURIComponent(fileURLToPath(import.meta.url));

describe('DATABASE_URL', () => {
  it.each([
    'postgres://ann:s3cret@db.example.com:5433/calendar',
    'postgresql://db/calendar',
    'postgres://ann:s3c,ret@db/calendar',
    'postgres://ann:s3cret@[::1]:5433/calendar',
    'postgres:///calendar?host=/run/postgresql',
    `postgres://db/calendar?sslmode=verify-full&sslrootcert=${file}&sslcert=${file}&sslkey=${file}`,
    'postgres://db/calendar?sslmode=require&uselibpqcompat=true',
    'postgres://db/calendar?ssl=true&sslnegotiation=direct',
    'postgres://db/calendar?sslnegotiation=direct',
    'postgres://db/calendar?sslmode=no-verify',
    `postgres://db/calendar?uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${file}`,
  ])('can be %s', (url) => {
    expect(read(url)).toBe(url);
  });

  it.each([
    ['ann:s3cret@a:5432,b:5432/calendar', 'name one host: that of a Service or proxy that follows the primary'],
    ['ann:s3cret@a,b/calendar', 'name one host'],
    ['ann:s3cret@[::1],[::2]:5432/calendar', 'name one host'],
    ['a,b', 'name one host'],
    [
      'db/calendar?target_session_attrs=s3cret',
      'not have the parameter target_session_attrs, which has no effect: the service itself notices a read-only server',
    ],
    [
      'db/calendar?connect_timeout=s3cret',
      'not have the parameter connect_timeout, which has no effect: allowed are host',
    ],
    ['db/calendar?load_balance_hosts=random', 'not have the parameter load_balance_hosts, which has no effect'],
    ['db/calendar?max=100', 'not have the parameter max, which has no effect'],
    [
      'db/calendar?options=s3cret',
      'not have the parameter options, which would replace what the service sets by itself',
    ],
    ['db/calendar?application_name=x', 'not have the parameter application_name, which would replace what the service'],
    [
      'db/calendar?statement_timeout=0',
      'not have the parameter statement_timeout, which would replace what the service',
    ],
    ['db/calendar?password=s3cret', 'not have the parameter password, which would replace what is before'],
    ['ann:1?s3cret@db/calendar', 'have "#", "?" and "/" in its password percent-encoded'],
    ['ann:1?s3cret=1@db/calendar', 'have "#", "?" and "/" in its password percent-encoded'],
    ['ann:1#s3cret@db/calendar', 'have "#", "?" and "/" in its password percent-encoded'],
    ['', 'name a host'],
    ['/calendar', 'name a host'],
    ['db/calendar?sslrootcert=/', 'name a file that can be read in the parameter sslrootcert'],
    ['db/calendar?channel_binding=require', 'not have the parameter channel_binding, which has no effect'],
    ['db/calendar?host=s3cret', 'have its host before the question mark'],
    ['db/calendar?host=/run/s3cret,/run/b', 'have its host before the question mark'],
    ['db/calendar?sslrootcert=/s3cret/missing.crt', 'name a file that can be read in the parameter sslrootcert'],
    ['db/calendar?sslcert=/s3cret/missing.crt', 'name a file that can be read in the parameter sslcert'],
    ['db/calendar?sslkey=/s3cret/missing.key', 'name a file that can be read in the parameter sslkey'],
    ['db/calendar?sslmode=s3cret', 'have one of disable, prefer, require, verify-ca, verify-full, no-verify in the'],
    ['db/calendar?ssl=false', 'have one of true, 1, 0 in the parameter ssl'],
    ['db/calendar?sslnegotiation=dirct', 'have one of postgres, direct in the parameter sslnegotiation'],
    ['db/calendar?uselibpqcompat=yes', 'have one of true, false in the parameter uselibpqcompat'],
    ['db/calendar?uselibpqcompat=true&sslmode=no-verify', 'not have sslmode=no-verify with uselibpqcompat=true'],
    ['db/calendar?uselibpqcompat=true&sslmode=verify-ca', 'have the parameter sslrootcert, which sslmode=verify-ca'],
    ['db/calendar?sslmode=disable&sslnegotiation=direct', 'not have sslnegotiation=direct without TLS'],
    ['db/calendar?ssl=0&sslnegotiation=direct', 'not have sslnegotiation=direct without TLS'],
    ['ann:100%s3cret@db/calendar', 'have its user and password percent-encoded'],
  ])('cannot be postgres://%s, and the value is not shown', (rest, fault) => {
    expect(() => read(`postgres://${rest}`)).toThrow(`DATABASE_URL must ${fault}`);
    expect(() => read(`postgres://${rest}`)).not.toThrow(/s3c/);
  });

  it('must be that of Postgres', () => {
    expect(() => read('mysql://a,b/calendar')).toThrow('must be a URL that begins with postgres:// or postgresql://');
  });

  it('has all of its faults named at once', () => {
    expect(() => read('postgres://db/calendar?max=5&options=x&sslkey=/missing')).toThrow(
      /parameter max,.*\n.*parameter options,.*\n.*parameter sslkey$/,
    );
  });
});
