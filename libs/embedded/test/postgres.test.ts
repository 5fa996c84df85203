import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  isReachable,
  type PostgresServer,
  processHasStopped,
  processIsAlive,
  startPostgres,
  waitUntil,
} from '../src/index.ts';

let dataDir: string;
/** A new cluster, which each test gets a copy of: to create one takes longer than most of the tests. */
let newCluster: string;
const servers: PostgresServer[] = [];

beforeAll(async () => {
  newCluster = await mkdtemp(join(tmpdir(), 'embedded-postgres-new-'));
  const server = await startPostgres({ dataDir: newCluster, durable: false });
  await server.stop();
});
afterAll(() => rm(newCluster, { recursive: true, force: true }));

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'embedded-postgres-'));
  await cp(newCluster, dataDir, { recursive: true });
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('embedded Postgres', { timeout: 60_000 }, () => {
  it('keeps its data and its address across a restart and leaves no process behind', async () => {
    const first = await start();
    await first.createDatabase('calendar');
    await first.createDatabase('calendar');
    await query(first.url('calendar'), 'CREATE TABLE note AS SELECT 42 AS answer');
    await first.stop();
    expect(await processIsAlive(first.pid)).toBe(false);
    expect(await isReachable(first.port)).toBe(false);

    const second = await start(first.port);
    expect(second.url('calendar')).toBe(first.url('calendar'));
    expect(await query(second.url('calendar'), 'SELECT answer FROM note')).toEqual([{ answer: 42 }]);
  });

  it('gives each database a role of its own, which owns it and can connect to no other', async () => {
    const server = await start();
    const [calendar, customer] = [await server.createDatabase('calendar'), await server.createDatabase('customer')];
    await query(calendar, 'CREATE TABLE note AS SELECT 42 AS answer');
    const crossing = new URL(calendar);
    crossing.pathname = new URL(customer).pathname;
    await expect(query(crossing.href, 'SELECT 1')).rejects.toThrow(/permission denied for database "customer"/);
    await expect(query(calendar, 'CREATE ROLE other')).rejects.toThrow(/permission denied/);
    const renewed = await server.createDatabase('calendar');
    expect(await query(renewed, 'SELECT answer FROM note')).toEqual([{ answer: 42 }]);
    await expect(query(calendar, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  });

  it('makes the password readable only for its owner, listens on the loopback address only and requires the password', async () => {
    const server = await start();
    expect((await stat(join(dataDir, 'postgres-password'))).mode & 0o777).toBe(0o600);
    expect(await query(server.url('postgres'), 'SHOW listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
    const wrong = server.url('postgres').replace(/:[^:@]+@/, ':wrong@');
    await expect(query(wrong, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  });

  it('replaces a server that a killed command left running', async () => {
    const left = await start();
    await left.createDatabase('kept');
    const next = await start();
    expect(await processIsAlive(left.pid)).toBe(false);
    expect(await query(next.url('kept'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('can be restarted immediately after a crash, even while sessions of the old server are still ending', async () => {
    const crashed = await start();
    const busy = new Client({ connectionString: crashed.url('postgres') });
    busy.on('error', () => {});
    await busy.connect();
    const sleeping = busy.query('SELECT pg_sleep(60)').catch(() => 'ended');
    process.kill(crashed.pid, 'SIGKILL');
    expect(await crashed.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const next = await start(crashed.port);
    expect(await query(next.url('postgres'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await sleeping).toBe('ended');
  });

  it('waits for an old server that has ended, but still has its pid because its parent has not reaped it', async () => {
    const code = `import { startPostgres } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url))};
      const server = await startPostgres({ dataDir: ${JSON.stringify(dataDir)}, durable: false });
      console.log(server.pid);`;
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void parent.kill('SIGKILL'));
    const [pid] = await once(parent.stdout, 'data');
    parent.kill('SIGSTOP');
    await waitUntil(() => processHasStopped(parent.pid!), { what: 'the parent to stop', timeoutMs: 30_000 });
    process.kill(Number(pid), 'SIGKILL');
    const said: string[] = [];
    const starting = startPostgres({ dataDir, durable: false, log: (message) => said.push(message) });
    const isSettled = starting.then((server) => servers.push(server)).catch(() => undefined);
    await Promise.race([isSettled, waitUntil(() => said.length > 0, { what: 'the message', timeoutMs: 30_000 })]);
    parent.kill('SIGKILL');
    const next = await starting;
    expect(said).toEqual([`waiting for the previous Postgres to end (process ${Number(pid)})`]);
    expect(await query(next.url('postgres'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('does not stop an unrelated process whose pid is in a stale lock file', async () => {
    const first = await start();
    const lockFile = join(dataDir, 'postgres', 'postmaster.pid');
    const lock = await readFile(lockFile, 'utf8');
    await first.stop();
    await writeFile(lockFile, lock.replace(/^\d+/, String(process.pid)));
    await waitUntil(async () => !(await processIsAlive(first.pid)), {
      what: 'the end of the first server',
      timeoutMs: 30_000,
    });
    const second = await start();
    expect(await query(second.url('postgres'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('reports in one line that the data is of another major version', async () => {
    await (await start()).stop();
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '15\n');
    await expect(start()).rejects.toThrow(/was written by Postgres 15, this is Postgres 18/);
  });
});

async function start(port?: number): Promise<PostgresServer> {
  const server = await startPostgres({ dataDir, port, durable: false });
  servers.push(server);
  return server;
}

async function query(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
