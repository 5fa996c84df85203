import { link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  processIsAlive,
  type ProcessIdentity,
  processStartTime,
  signalProcess,
  stopProcess,
  waitUntil,
} from '@scheduling/embedded';
import { databaseServices, httpServices, servers, type Unit } from '@scheduling/stack';
import { UsageError } from './config.ts';

/**
 * The command that uses a data folder, and every process started for it: what is needed to clean up after a killed
 * command.
 */
interface RunRecord {
  command: ProcessIdentity;
  stopping: boolean;
  processes: Partial<Record<Unit, ProcessIdentity>>;
}

/** A data folder that this command holds until it releases it. */
export interface DataFolder {
  path: string;
  /** Removes all data. */
  empty(): Promise<void>;
  /**
   * Records a process right after its start, replacing an earlier one of that name. If the stack is already stopping,
   * stops the process.
   */
  record(unit: Unit, pid: number): Promise<void>;
  /** Whether the folder was removed or replaced: whatever is at its path now is not ours. */
  isLost(): Promise<boolean>;
  /**
   * Stops every recorded process, even if the folder was removed or replaced: the gateway and page, then the other services,
   * then the servers. From now on no process is added, and other commands that want the folder wait for it instead of failing.
   */
  stop(): Promise<void>;
  /** Kills every recorded process immediately. */
  killProcesses(): void;
  /** Releases the folder for the next command. */
  release(): Promise<void>;
}

type Say = (message: string) => void;

const marker = '.scheduling-data';
const runFile = 'run.json';
const ownEntries = [
  'postgres',
  'postgres.new',
  'postgres-password',
  'nats',
  'inbox',
  'logs',
  'demo-key',
  'webhook-key',
  'link-key',
  'stack.json',
];

/** A command whose terminal or npm process is gone needs this long to notice. */
const orphanNoticeMs = 3_000;
const otherStopMs = 15_000;
const serviceStopMs = 3_000;
const serverStopMs = 3_000;

/**
 * Claims a data folder for this command, creates it if it does not exist, and stops the processes that an earlier,
 * killed command left running. Waits for a command that is stopping. Throws a UsageError if another stack uses the
 * folder, or if it contains anything else.
 */
export async function claimDataFolder(path: string, say: Say): Promise<DataFolder> {
  if (await isUnusedFolder(path)) {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await writeFile(join(path, marker), 'Data of a local scheduling stack. "npm start -- --fresh" empties it.\n');
  }
  const file = join(path, runFile);
  const mine: RunRecord = { command: await ownIdentity(), stopping: false, processes: {} };
  while (!(await createRecord(file, mine))) {
    const other = await readRecord(file);
    if (!other) continue;
    if (await isRunning(other.command)) await waitForOther(path, file, other);
    await stopLeftovers(other, say);
    await removeRecord(file, other);
  }
  return ownedFolder(path, file, mine);
}

function ownedFolder(path: string, file: string, record: RunRecord): DataFolder {
  const isLost = async (): Promise<boolean> => {
    // A record that temporarily cannot be read does not count as lost.
    const present = await readRecord(file).catch(() => record);
    return present === undefined || !isSame(present.command, record.command);
  };
  let written = Promise.resolve();
  const save = (): Promise<void> => {
    const writing = written.then(async () => {
      if (await isLost()) throw new Error(`${path} was removed or replaced`);
      await writeAtomically(file, JSON.stringify(record));
    });
    written = writing.catch(() => {});
    return writing;
  };
  return {
    path,
    empty: async () => {
      // A process of the last Postgres may outlive its parent for a moment, and write another file: ENOTEMPTY.
      const retries = { maxRetries: 10, retryDelay: 50 };
      for (const entry of ownEntries) await rm(join(path, entry), { recursive: true, force: true, ...retries });
    },
    record: async (unit, pid) => {
      const startTime = await processStartTime(pid);
      if (record.stopping) return signalProcess(-pid, 'SIGKILL');
      if (startTime === undefined) return;
      record.processes[unit] = { pid, startTime };
      await save();
    },
    isLost,
    stop: async () => {
      record.stopping = true;
      // If this fails, other commands are told that the folder is in use instead of waiting. Everything is stopped all
      // the same.
      await save().catch(() => {});
      await stopAll(record.processes);
    },
    killProcesses: () => {
      for (const [unit, { pid }] of entriesOf(record.processes)) signalProcess(-pid, killSignal(unit));
    },
    release: async () => {
      await written;
      if (!(await isLost())) await rm(file, { force: true });
    },
  };
}

/** Whether the folder is missing or empty. Throws a UsageError if it contains anything but the data of a stack. */
export async function isUnusedFolder(path: string): Promise<boolean> {
  const entries = await readdir(path).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return [];
    if (error.code === 'ENOTDIR') throw new UsageError(`${path} is not a folder: set SCHEDULING_DATA to another one.`);
    throw error;
  });
  if (entries.length === 0) return true;
  if (entries.includes(marker)) return false;
  throw new UsageError(
    `${path} is not empty and was not created by this command: set SCHEDULING_DATA to a new or empty folder.`,
  );
}

async function waitForOther(path: string, file: string, other: RunRecord): Promise<void> {
  const isGone = async (): Promise<boolean> => !(await isRunning(other.command));
  const isLeaving = async (): Promise<boolean> => (await isGone()) || (await readRecord(file))?.stopping === true;
  const inUse = new UsageError(
    `${path} is in use by another stack (process ${other.command.pid}): stop it, or set SCHEDULING_DATA and SCHEDULING_PORT for a second one.`,
  );
  await waitUntil(isLeaving, { what: 'the other stack to be stopping', timeoutMs: orphanNoticeMs }).catch(() => {
    throw inUse;
  });
  await waitUntil(isGone, { what: 'the other stack to be gone', timeoutMs: otherStopMs }).catch(() => {
    throw inUse;
  });
}

async function stopLeftovers({ processes }: RunRecord, say: Say): Promise<void> {
  const running = await Promise.all(
    entriesOf(processes).map(async ([unit, identity]) => ((await isRunning(identity)) ? [unit] : [])),
  );
  const left = running.flat();
  if (left.length > 0)
    say(`an earlier run was killed and left ${left.join(', ')} running; stopping ${left.length === 1 ? 'it' : 'them'}`);
  await stopAll(processes);
}

/** A process that does not end must not prevent the others from being stopped. */
async function stopAll(processes: RunRecord['processes']): Promise<void> {
  const left: string[] = [];
  const stop = async (units: readonly Unit[], timeoutMs: number): Promise<void> => {
    await Promise.all(
      units.map(async (unit) => {
        const identity = processes[unit];
        if (!identity || !(await isRunning(identity))) return;
        await stopProcess(identity.pid, stopSignal(unit), timeoutMs).catch(() =>
          left.push(`${unit} (process ${identity.pid})`),
        );
      }),
    );
  };
  await stop(httpServices, serviceStopMs);
  await stop(databaseServices, serviceStopMs);
  await stop(servers, serverStopMs);
  if (left.length > 0) throw new Error(`These processes did not end: ${left.join(', ')}`);
}

/** SIGINT is Postgres' fast shutdown; on SIGTERM it would wait for every session. */
function stopSignal(unit: Unit): NodeJS.Signals {
  return unit === 'postgres' ? 'SIGINT' : 'SIGTERM';
}

/** On SIGQUIT, Postgres also terminates its backends, and recovers at the next start. */
function killSignal(unit: Unit): NodeJS.Signals {
  return unit === 'postgres' ? 'SIGQUIT' : 'SIGKILL';
}

async function isRunning({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  return (await processIsAlive(pid)) && (await processStartTime(pid)) === startTime;
}

function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.startTime === other.startTime;
}

async function ownIdentity(): Promise<ProcessIdentity> {
  return { pid: process.pid, startTime: (await processStartTime(process.pid)) ?? '' };
}

async function readRecord(file: string): Promise<RunRecord | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as RunRecord;
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new UsageError(
        `${file} is damaged: make sure that no stack is running on this folder, then delete the file.`,
      );
    return unlessMissing(error);
  }
}

function unlessMissing(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

/** A link is created atomically, and only once: of two commands that start at the same time, one gets the folder. */
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

/**
 * Removes the record of a dead command. If another command has meanwhile removed it and written its own, that one is
 * restored.
 */
async function removeRecord(file: string, expected: RunRecord): Promise<void> {
  const removed = `${file}.${process.pid}.old`;
  await rename(file, removed).catch(unlessMissing);
  const { command } = (await readRecord(removed)) ?? expected;
  if (!isSame(command, expected.command)) await link(removed, file);
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
