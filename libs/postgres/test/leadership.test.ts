import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createDatabase, createLeadership, type Database } from '../src/index.ts';

const lock = 42;
let database: Database<unknown>;

beforeEach(async () => {
  database = createDatabase({
    url: await createTestDatabase(),
    applicationName: 'test',
    logger: testLogger('leadership-test'),
    ...longTimeout,
  });
});
afterEach(() => database[Symbol.asyncDispose]());

it('is held by one process at a time, and released at the end', async () => {
  await using second = createLeadership(database.pool, lock);
  {
    await using first = createLeadership(database.pool, lock);
    expect(await first.acquire()).toBe(true);
    expect(await first.acquire()).toBe(true);
    expect(await second.acquire()).toBe(false);
    expect([first.held, second.held]).toEqual([true, false]);
  }
  await eventually(async () => expect(await second.acquire()).toBe(true));
});

it('is lost with its connection, and can be acquired again', async () => {
  let losses = 0;
  await using leadership = createLeadership(database.pool, lock, () => (losses += 1));
  await leadership.acquire();
  await database.pool.query(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    [lock],
  );
  await eventually(() => expect(leadership.held).toBe(false));
  expect(losses).toBe(1);
  await eventually(async () => expect(await leadership.acquire()).toBe(true));
});
