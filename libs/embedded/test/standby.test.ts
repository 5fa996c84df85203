import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createStandby, type PostgresServer, startPostgres, waitUntil, withClient } from '../src/index.ts';

it('copies a running Postgres as a standby, which follows it and can be promoted', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'embedded-standby-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const primary = await start(join(folder, 'first'));
  const address = await primary.createDatabase('calendar');
  await query(address, 'CREATE TABLE note AS SELECT 42 AS answer');
  await createStandby(primary, { dataDir: join(folder, 'second'), name: 'second' });
  const standby = await start(join(folder, 'second'));
  expect(await query(standby.url('postgres'), 'SELECT pg_is_in_recovery()')).toEqual([{ pg_is_in_recovery: true }]);

  await query(address, 'INSERT INTO note VALUES (43)');
  const followed = standby.url('calendar');
  await waitUntil(async () => (await query(followed, 'SELECT FROM note')).length === 2, {
    what: 'the second row',
    timeoutMs: 30_000,
  });
  expect(await query(primary.url('postgres'), 'SELECT application_name FROM pg_stat_replication')).toEqual([
    { application_name: 'second' },
  ]);
  await expect(query(followed, 'INSERT INTO note VALUES (44)')).rejects.toMatchObject({ code: '25006' });

  await primary.stop();
  await query(standby.url('postgres'), 'SELECT pg_promote()');
  expect(await query(followed, 'INSERT INTO note VALUES (44) RETURNING answer')).toEqual([{ answer: 44 }]);
});

async function start(dataDir: string): Promise<PostgresServer> {
  const server = await startPostgres({ dataDir, durable: false, settings: { wal_keep_size: '64MB' } });
  onTestFinished(() => server.stop());
  return server;
}

function query(url: string, sql: string): Promise<object[]> {
  return withClient(url, async (client) => (await client.query<object>(sql)).rows);
}
