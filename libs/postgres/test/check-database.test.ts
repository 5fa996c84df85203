import { createStandby, startPostgres, withClient } from '@scheduling/embedded';
import { eventually } from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkDatabase } from '../src/index.ts';

const resources = new AsyncDisposableStack();
/** A database of a role without privileges, as that of a service. */
let url: string;
let execute: (...statements: string[]) => Promise<void>;
let executeOnStandby: (...statements: string[]) => Promise<void>;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'check-database-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const start = async (name: string) =>
    resources.use(
      await startPostgres({ dataDir: join(folder, name), durable: false, settings: { wal_keep_size: '512MB' } }),
    );
  const primary = await start('primary');
  url = await primary.createDatabase('calendar');
  await createStandby(primary, { dataDir: join(folder, 'standby'), name: 'standby' });
  const standby = await start('standby');
  const on =
    (server: typeof primary) =>
    (...statements: string[]) =>
      withClient(server.url('postgres'), async (client) => {
        for (const statement of statements) await client.query(statement);
      });
  [execute, executeOnStandby] = [on(primary), on(standby)];
}, 120_000);
afterAll(() => resources.disposeAsync());

it('counts standbys, and sees how far they are behind if its role may', async () => {
  await eventually(async () => expect((await checkDatabase(url)).standbys).toBe(1));
  // A lag is measured once something was replayed.
  await execute('SELECT pg_logical_emit_message(true, $$$$, $$$$)');
  expect(await checkDatabase(url)).toMatchObject({ refusal: '', unfinished: false, replayLagSeconds: undefined });
  await execute('GRANT pg_monitor TO calendar');
  await executeOnStandby('SELECT pg_wal_replay_pause()');
  await eventually(async () => {
    await execute('CREATE TABLE IF NOT EXISTS written (number int)', 'INSERT INTO written VALUES (1)');
    expect((await checkDatabase(url)).replayLagSeconds).toBeGreaterThan(1);
  });
  await executeOnStandby('SELECT pg_wal_replay_resume()');
  await eventually(async () => expect((await checkDatabase(url)).replayLagSeconds ?? 0).toBeLessThan(1));
});

it('says that commits wait for a standby that is connected, but is not one of those that confirm them', async () => {
  await execute(`ALTER SYSTEM SET synchronous_standby_names = 'another'`, 'SELECT pg_reload_conf()');
  try {
    await eventually(async () =>
      expect(await checkDatabase(url)).toMatchObject({
        unfinished: true,
        standbys: 1,
        synchronousStandbyNames: 'another',
        waitingForStandby: expect.toSatisfy((sessions: number) => sessions > 0),
      }),
    );
  } finally {
    await execute('ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
  }
  await eventually(async () =>
    expect(await checkDatabase(url)).toMatchObject({ unfinished: false, waitingForStandby: 0 }),
  );
});

it('finds the replication slots that nobody uses, and how much is kept for them', async () => {
  await execute(`SELECT pg_create_physical_replication_slot('former', true)`);
  try {
    await execute('CREATE TABLE kept AS SELECT repeat($$x$$, 100) FROM generate_series(1, 10000)');
    const { idleSlots } = await checkDatabase(url);
    expect(idleSlots).toEqual([{ name: 'former', keptBytes: expect.any(Number) }]);
    expect(idleSlots[0]!.keptBytes).toBeGreaterThan(1_000_000);
  } finally {
    await execute(`SELECT pg_drop_replication_slot('former')`);
  }
  expect(await checkDatabase(url)).toMatchObject({ idleSlots: [] });
});
