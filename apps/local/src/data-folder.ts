import { link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processIsAlive, type ProcessIdentity, processStartTime, signalProcess, stopProcess, waitUntil } from '@scheduling/embedded';
import { UsageError } from './config.ts';
import { servers, services, type Unit } from './service-table.ts';

/** Who uses a data folder, and every process that was started for it: what is needed to clean up after a command that was killed. */
interface RunRecord {
  command: ProcessIdentity;
  stopping: boolean;
  processes: Partial<Record<Unit, ProcessIdentity>>;
}

/** A data folder that belongs to this command until it is released. */
export interface DataFolder {
  path: string;
  /** Removes all data. */
  empty(): Promise<void>;
  /** Writes down a process right after it was started, in the place of an earlier one of that name. Once the folder is being given back, ends it. */
  record(unit: Unit, pid: number): Promise<void>;
  /** From now on no process is added, and others that want the folder wait for it instead of giving up. */
  markStopping(): Promise<void>;
  /** Stops every recorded process: the gateway, then the services, then the servers. */
  stopProcesses(): Promise<void>;
  /** Ends every recorded process this moment. */
  killProcesses(): void;
  release(): Promise<void>;
}

const marker = '.scheduling-data';
const runFile = 'run.json';
const ownEntries = ['postgres', 'postgres.new', 'postgres-password', 'nats', 'inbox', 'logs', 'demo-key', 'stack.json'];

/** A command whose terminal or npm is gone needs this long to notice. */
const orphanNoticeMs = 3_000;
const otherStopMs = 15_000;
const serviceStopMs = 3_000;
const serverStopMs = 3_000;

/**
 * Takes a data folder for this command, makes it when it does not exist, and stops what an earlier, killed command left running on it.
 * Waits for a command that is just stopping. Throws a UsageError when another stack uses the folder, or when it holds something else.
 */
export async function claimDataFolder(path: string): Promise<DataFolder> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await recognise(path);
  const file = join(path, runFile);
  const mine: RunRecord = { command: await ownIdentity(), stopping: false, processes: {} };
  while (!(await createRecord(file, mine))) {
    const other = await readRecord(file);
    if (!other) continue;
    if (await isRunning(other.command)) await waitForOther(path, file, other);
    await stopAll(other.processes);
    await removeRecord(file, other);
  }
  return ownedFolder(path, file, mine);
}

function ownedFolder(path: string, file: string, record: RunRecord): DataFolder {
  let written = Promise.resolve();
  const save = (): Promise<void> => {
    written = written.then(() => writeAtomically(file, JSON.stringify(record)));
    return written;
  };
  return {
    path,
    empty: async () => {
      for (const entry of ownEntries) await rm(join(path, entry), { recursive: true, force: true });
    },
    record: async (unit, pid) => {
      const startTime = await processStartTime(pid);
      if (record.stopping) return signalProcess(-pid, 'SIGKILL');
      if (startTime === undefined) return;
      record.processes[unit] = { pid, startTime };
      await save();
    },
    markStopping: () => {
      record.stopping = true;
      return save();
    },
    stopProcesses: () => stopAll(record.processes),
    killProcesses: () => {
      for (const [unit, { pid }] of entriesOf(record.processes)) signalProcess(-pid, killSignal(unit));
    },
    release: async () => {
      await written;
      await rm(file, { force: true });
    },
  };
}

/** A folder without the marker may hold a `postgres` or a `nats` that is somebody else's. */
async function recognise(path: string): Promise<void> {
  const entries = await readdir(path);
  if (entries.includes(marker)) return;
  const foreign = entries.find((entry) => ownEntries.includes(entry));
  if (foreign !== undefined) throw new UsageError(`${path} holds "${foreign}" of something else: set SCHEDULING_DATA to another folder.`);
  await writeFile(join(path, marker), 'Data of a local scheduling stack. "npm start -- --fresh" empties it.\n');
}

async function waitForOther(path: string, file: string, other: RunRecord): Promise<void> {
  const isGone = async (): Promise<boolean> => !(await isRunning(other.command));
  const isLeaving = async (): Promise<boolean> => (await isGone()) || (await readRecord(file))?.stopping === true;
  const inUse = new UsageError(
    `${path} is used by another stack (process ${other.command.pid}): stop it, or set SCHEDULING_DATA and SCHEDULING_PORT for a second one.`,
  );
  await waitUntil(isLeaving, { what: 'the other stack to be leaving', timeoutMs: orphanNoticeMs }).catch(() => {
    throw inUse;
  });
  await waitUntil(isGone, { what: 'the other stack to be gone', timeoutMs: otherStopMs }).catch(() => {
    throw inUse;
  });
}

async function stopAll(processes: RunRecord['processes']): Promise<void> {
  const stop = async (units: readonly Unit[], timeoutMs: number): Promise<void> => {
    await Promise.all(
      units.map(async (unit) => {
        const identity = processes[unit];
        if (!identity || !(await isRunning(identity))) return;
        await stopProcess(identity.pid, stopSignal(unit), timeoutMs);
      }),
    );
  };
  await stop(['gateway'], serviceStopMs);
  await stop(
    services.filter((service) => service !== 'gateway'),
    serviceStopMs,
  );
  await stop(servers, serverStopMs);
}

/** SIGINT is Postgres' fast stop; its SIGTERM would wait for every session. */
function stopSignal(unit: Unit): NodeJS.Signals {
  return unit === 'postgres' ? 'SIGINT' : 'SIGTERM';
}

/** Postgres takes its backends along on SIGQUIT, and recovers at the next start. */
function killSignal(unit: Unit): NodeJS.Signals {
  return unit === 'postgres' ? 'SIGQUIT' : 'SIGKILL';
}

async function isRunning({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  return (await processIsAlive(pid)) && (await processStartTime(pid)) === startTime;
}

async function ownIdentity(): Promise<ProcessIdentity> {
  return { pid: process.pid, startTime: (await processStartTime(process.pid)) ?? '' };
}

async function readRecord(file: string): Promise<RunRecord | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as RunRecord;
  } catch (error) {
    return unlessMissing(error);
  }
}

function unlessMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

/** A link appears whole and only once: of two commands that start at the same time, one takes the folder. */
async function createRecord(file: string, record: RunRecord): Promise<boolean> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, JSON.stringify(record), { mode: 0o600 });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes the record of a command that is gone. Another command may have done so and put its own there in the meantime: that one is put back. */
async function removeRecord(file: string, expected: RunRecord): Promise<void> {
  const removed = `${file}.${process.pid}.old`;
  await rename(file, removed).catch(unlessMissing);
  const { command } = (await readRecord(removed)) ?? expected;
  if (command.pid !== expected.command.pid || command.startTime !== expected.command.startTime) await link(removed, file);
  await rm(removed, { force: true });
}

export async function writeAtomically(file: string, text: string): Promise<void> {
  const draft = `${file}.new`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, file);
}

function entriesOf(processes: RunRecord['processes']): [Unit, ProcessIdentity][] {
  return Object.entries(processes) as [Unit, ProcessIdentity][];
}
