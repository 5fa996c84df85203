import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, processIsAlive, processStartTime, spawnChild } from '@scheduling/embedded';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claimDataFolder } from './data-folder.ts';

let path: string;
const children: Child[] = [];

beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'data-folder-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop('SIGKILL', 1_000);
  await rm(path, { recursive: true, force: true });
});

it('stops what a killed command left behind, but nothing that only has the same pid', async () => {
  await (await claimDataFolder(path)).release();
  const left = await startSleeper();
  const stranger = await startSleeper();
  await leaveRecord({
    command: { pid: 2 ** 22 + 1, startTime: 'long ago' },
    processes: { calendar: { pid: left.pid, startTime: await processStartTime(left.pid) }, gateway: { pid: stranger.pid, startTime: 'of another process' } },
  });
  const folder = await claimDataFolder(path);
  expect(await processIsAlive(left.pid)).toBe(false);
  expect(await processIsAlive(stranger.pid)).toBe(true);
  await folder.release();
});

it('waits for a stack that is just stopping', async () => {
  await (await claimDataFolder(path)).release();
  const other = await startSleeper();
  await leaveRecord({ command: { pid: other.pid, startTime: await processStartTime(other.pid) }, stopping: true });
  const claim = claimDataFolder(path);
  await other.stop('SIGTERM', 1_000);
  await expect(claim).resolves.toMatchObject({ path });
});

it('refuses a folder that another stack uses, and names the remedy', async () => {
  const first = await claimDataFolder(path);
  await expect(claimDataFolder(path)).rejects.toThrow(/is used by another stack \(process \d+\): stop it, or set SCHEDULING_DATA/);
  await first.release();
});

it('gives the folder to one of two commands that start at the same time', async () => {
  const claims = await Promise.allSettled([claimDataFolder(path), claimDataFolder(path)]);
  expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

it('empties only what it knows, and refuses a folder that is not its own', async () => {
  const folder = await claimDataFolder(path);
  await mkdir(join(path, 'postgres'));
  await writeFile(join(path, 'notes.txt'), 'mine');
  await folder.empty();
  await expect(readFile(join(path, 'postgres'))).rejects.toThrow(/ENOENT/);
  expect(await readFile(join(path, 'notes.txt'), 'utf8')).toBe('mine');
  await folder.release();

  const foreign = join(path, 'foreign');
  await mkdir(join(foreign, 'postgres'), { recursive: true });
  await expect(claimDataFolder(foreign)).rejects.toThrow(/holds "postgres" of something else: set SCHEDULING_DATA/);
});

async function startSleeper(): Promise<Child> {
  const child = await spawnChild({
    command: process.execPath,
    args: ['-e', 'setInterval(() => {}, 1000)'],
    cwd: path,
    environment: {},
    logFile: join(path, 'sleeper.log'),
  });
  children.push(child);
  return child;
}

async function leaveRecord(record: object): Promise<void> {
  await writeFile(join(path, 'run.json'), JSON.stringify({ stopping: false, processes: {}, ...record }));
}
