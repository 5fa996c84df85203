import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { waitUntil } from './wait-until.ts';

const run = promisify(execFile);

/** A process that a later command can find again: the pid alone may by then belong to another process. */
export interface ProcessIdentity {
  pid: number;
  /** As returned by {@link processStartTime}. */
  startTime: string;
}

/** Whether a process with this pid exists and has not ended (a zombie does not count). */
export async function processIsAlive(pid: number): Promise<boolean> {
  if (!processExists(pid)) return false;
  const statusFields = await readProcessStatus(pid);
  // This system has no /proc, or the process was reaped in between.
  if (statusFields === undefined) return processExists(pid);
  return !['Z', 'X'].includes(statusFields[0] ?? '');
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * The start time of a process, as the operating system formats it: together with the pid it identifies a process.
 * Undefined: no such process.
 */
export async function processStartTime(pid: number): Promise<string | undefined> {
  if (!(await processIsAlive(pid))) return undefined;
  const statusFields = await readProcessStatus(pid);
  if (statusFields) return `${await bootId()}-${statusFields[19]}`;
  return ps(pid, 'lstart=');
}

/** The command line of a process; undefined if there is no such process. */
export async function processCommand(pid: number): Promise<string | undefined> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
  } catch {
    return ps(pid, 'command=');
  }
}

/**
 * Stops a process that is not a child of this one: sends the signal, and SIGKILL to it and its group if it does not end
 * in time.
 */
export async function stopProcess(pid: number, signal: NodeJS.Signals, timeoutMs: number): Promise<void> {
  signalProcess(pid, signal);
  const gone = async (): Promise<boolean> => !(await processIsAlive(pid));
  try {
    await waitUntil(gone, { what: `the end of process ${pid}`, timeoutMs, intervalMs: 25 });
  } catch {
    signalProcess(-pid, 'SIGKILL');
    signalProcess(pid, 'SIGKILL');
    await waitUntil(gone, { what: `the end of process ${pid}`, timeoutMs: 2_000, intervalMs: 25 });
  }
}

/** Sends a signal; a negative pid identifies a process group. Ignores a process that no longer exists. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Whether a process has stopped after a SIGSTOP, or ended. It goes on for a moment after the signal was sent, up to
 * tens of milliseconds on a busy machine, until the last of its threads has stopped.
 */
export async function processHasStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const statuses = await Promise.all(threads.map((thread) => readStatus(`/proc/${pid}/task/${thread}/stat`)));
  return statuses.every((fields) => fields === undefined || ['T', 'X', 'Z'].includes(fields[0] ?? ''));
}

/** The processes that a process has started, on a system with /proc. Postgres has one per connection. */
export async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(pids.map(async (pid) => Number((await readProcessStatus(pid))?.[1])));
  return pids.filter((_, index) => parents[index] === parent);
}

/** Of /proc/<pid>/stat. Undefined without a /proc. */
const readProcessStatus = (pid: number): Promise<string[] | undefined> => readStatus(`/proc/${pid}/stat`);

/** The fields after the command's name, which may itself contain spaces and parentheses. */
async function readStatus(path: string): Promise<string[] | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Start times in /proc are relative to the boot, so they repeat after the next one. */
async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => 'boot')).trim();
}

async function ps(pid: number, field: string): Promise<string | undefined> {
  const result = await run('ps', ['-ww', '-o', field, '-p', String(pid)]).catch(() => undefined);
  return result?.stdout.trim() || undefined;
}
