import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { waitUntil } from './wait-until.ts';

const run = promisify(execFile);

/** A process that a later command can find again: the pid alone may by then belong to another program. */
export interface ProcessIdentity {
  pid: number;
  /** As {@link processStartTime} gave it. */
  startTime: string;
}

/** Whether a process with this pid exists and has not yet ended (one that ended and was not yet collected does not count). */
export async function processIsAlive(pid: number): Promise<boolean> {
  if (!processExists(pid)) return false;
  const statusFields = await readProcessStatus(pid);
  // This system has no /proc, or the process was collected in between.
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

/** When the process started, in the words of the operating system: together with the pid it names a process uniquely. Undefined: no such process. */
export async function processStartTime(pid: number): Promise<string | undefined> {
  if (!(await processIsAlive(pid))) return undefined;
  const statusFields = await readProcessStatus(pid);
  if (statusFields) return `${await bootId()}-${statusFields[19]}`;
  return ps(pid, 'lstart=');
}

/** The command line of a process; undefined when there is no such process. */
export async function processCommand(pid: number): Promise<string | undefined> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
  } catch {
    return ps(pid, 'command=');
  }
}

/** Stops a process that is not a child of this one: the signal first, SIGKILL for it and its group when it does not end in time. */
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

/** Sends a signal; a negative pid names a process group. A process that is gone already is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The fields of /proc/<pid>/stat behind the command's name, which may itself hold spaces and brackets. Undefined without a /proc. */
async function readProcessStatus(pid: number): Promise<string[] | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Start times of /proc count from the boot, so they repeat after the next one. */
async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => 'boot')).trim();
}

async function ps(pid: number, field: string): Promise<string | undefined> {
  const result = await run('ps', ['-ww', '-o', field, '-p', String(pid)]).catch(() => undefined);
  return result?.stdout.trim() || undefined;
}
