import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, processIsAlive, processStartTime, spawnChild, waitUntil } from '@scheduling/embedded';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claimDataFolder, type DataFolder } from './data-folder.ts';

let parent: string;
let path: string;
let said: string[];
const children: Child[] = [];

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'data-folder-'));
  path = join(parent, 'data');
  said = [];
});

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop('SIGKILL', 1_000);
  await rm(parent, { recursive: true, force: true });
});

it('stops and reports the processes that a killed command left behind, but no other process with the same pid', async () => {
  await (await claim()).release();
  const left = await startSleeper();
  const stranger = await startSleeper();
  await leaveRecord({
    command: { pid: 2 ** 22 + 1, startTime: 'long ago' },
    processes: {
      calendar: { pid: left.pid, startTime: await processStartTime(left.pid) },
      gateway: { pid: stranger.pid, startTime: 'of another process' },
    },
  });
  const folder = await claim();
  expect(said).toEqual(['an earlier run was killed and left calendar running; stopping it']);
  expect(await processIsAlive(left.pid)).toBe(false);
  expect(await processIsAlive(stranger.pid)).toBe(true);
  await folder.release();
});

it('waits for a stack that is stopping', async () => {
  await (await claim()).release();
  const other = await startSleeper();
  await leaveRecord({ command: { pid: other.pid, startTime: await processStartTime(other.pid) }, stopping: true });
  const claiming = claim();
  await other.stop('SIGTERM', 1_000);
  await expect(claiming).resolves.toMatchObject({ path });
});

it('rejects a folder that another stack uses, and suggests a remedy', async () => {
  const first = await claim();
  await expect(claim()).rejects.toThrow(/is in use by another stack \(process \d+\): stop it, or set SCHEDULING_DATA/);
  await first.release();
});

it('lets only one of two commands that start at the same time use the folder', async () => {
  const claims = await Promise.allSettled([claim(), claim()]);
  expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

it('deletes only files that it knows', async () => {
  const folder = await claim();
  await mkdir(join(path, 'postgres'));
  await writeFile(join(path, 'notes.txt'), 'mine');
  await folder.empty();
  await expect(readFile(join(path, 'postgres'))).rejects.toThrow(/ENOENT/);
  expect(await readFile(join(path, 'notes.txt'), 'utf8')).toBe('mine');
  await folder.release();
});

it('rejects a folder that contains anything else, and leaves it unchanged', async () => {
  await mkdir(path);
  await writeFile(join(path, 'notes.txt'), 'mine');
  await expect(claim()).rejects.toThrow(`${path} is not empty and was not created by this command`);
  expect(await readdir(path)).toEqual(['notes.txt']);
  await expect(claimDataFolder(join(path, 'notes.txt'), say)).rejects.toThrow(/notes\.txt is not a folder/);
});

it('names the file if it cannot determine who uses the folder', async () => {
  await (await claim()).release();
  await writeFile(join(path, 'run.json'), '');
  await expect(claim()).rejects.toThrow(
    /run\.json is damaged: make sure that no stack is running on this folder, then delete the file/,
  );
});

it.each([
  ['removed', () => rm(path, { recursive: true })],
  [
    'replaced by a file',
    async () => {
      await rm(path, { recursive: true });
      await writeFile(path, 'a file');
    },
  ],
  [
    'replaced by that of another stack',
    async () => {
      await rm(path, { recursive: true });
      await claim();
      await leaveRecord({ command: { pid: 1, startTime: 'of another command' } });
    },
  ],
])('stops its processes if the folder was %s, and leaves whatever replaced it untouched', async (_, replace) => {
  const folder = await claim();
  const sleeper = await startSleeper();
  await folder.record('calendar', sleeper.pid);
  expect(await folder.isLost()).toBe(false);
  await replace();
  expect(await folder.isLost()).toBe(true);
  const before = await readFile(join(path, 'run.json'), 'utf8').catch(String);
  await folder.stop();
  expect(await processIsAlive(sleeper.pid)).toBe(false);
  await folder.release();
  expect(await readFile(join(path, 'run.json'), 'utf8').catch(String)).toBe(before);
});

it('stops its processes if the disk is full, and lets no new process run unrecorded', async () => {
  const folder = await claim();
  const sleeper = await startSleeper();
  await folder.record('calendar', sleeper.pid);
  // Has the effect of a full disk for every user, including root: the draft of the record cannot be written.
  await mkdir(join(path, 'run.json.new'));
  let unrecorded = 0;
  const record = (pid: number): Promise<void> => folder.record('customer', (unrecorded = pid));
  await expect(startSleeper(record)).rejects.toThrow(/EISDIR/);
  await waitUntil(async () => !(await processIsAlive(unrecorded)), {
    what: 'the end of the unrecorded process',
    timeoutMs: 30_000,
  });
  expect(await folder.isLost()).toBe(false);
  await folder.stop();
  expect(await processIsAlive(sleeper.pid)).toBe(false);
  await folder.release();
  expect(await readdir(path)).not.toContain('run.json');
});

function claim(): Promise<DataFolder> {
  return claimDataFolder(path, say);
}

function say(message: string): void {
  said.push(message);
}

async function startSleeper(onSpawn?: (pid: number) => Promise<void>): Promise<Child> {
  const child = await spawnChild({
    command: process.execPath,
    args: ['-e', 'setInterval(() => {}, 1000)'],
    cwd: parent,
    environment: {},
    logFile: join(parent, 'sleeper.log'),
    onSpawn,
  });
  children.push(child);
  return child;
}

async function leaveRecord(record: object): Promise<void> {
  await writeFile(join(path, 'run.json'), JSON.stringify({ stopping: false, processes: {}, ...record }));
}
