import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { lastLines, openLog } from './log-file.ts';
import { signalProcess } from './process-table.ts';
import { waitUntil } from './wait-until.ts';

export interface SpawnOptions {
  command: string;
  args: readonly string[];
  cwd: string;
  /** The complete environment: nothing is inherited. */
  environment: NodeJS.ProcessEnv;
  /** Receives stderr and, unless it is discarded, stdout. */
  logFile: string;
  discardStdout?: boolean;
  uid?: number;
  gid?: number;
  /** Added to the niceness of this process: the child gets less of the processor. 0 by default. */
  niceness?: number;
  onSpawn?: OnSpawn;
}

/** Called as soon as a child exists, long before it is ready, so that it can be found if its parent is killed. */
export type OnSpawn = (pid: number) => Promise<void>;

export interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  pid: number;
  logFile: string;
  exited: Promise<ChildExit>;
  /**
   * Sends the signal, waits for the process to end, and kills it with its group if that takes longer than `timeoutMs`.
   */
  stop(signal: NodeJS.Signals, timeoutMs: number): Promise<void>;
}

/**
 * Starts a program in a separate session: the Ctrl-C of a terminal reaches only the command, which then stops its
 * children in order. Rejects if the program cannot be started at all, or if `onSpawn` rejects, which stops it.
 */
export async function spawnChild(options: SpawnOptions): Promise<Child> {
  const log = await openLog(options.logFile);
  try {
    const child = spawn(options.command, options.args, {
      cwd: options.cwd,
      env: options.environment,
      uid: options.uid,
      gid: options.gid,
      detached: true,
      stdio: ['ignore', options.discardStdout === true ? 'ignore' : log.fd, log.fd],
    });
    // At once: later it may have ended. Nobody but root may lower what a process inherits.
    if (options.niceness !== undefined && child.pid !== undefined)
      setPriority(child.pid, Math.min(constants.priority.PRIORITY_LOW, getPriority() + options.niceness));
    const exited = new Promise<ChildExit>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    await once(child, 'spawn');
    const pid = child.pid!;
    await options.onSpawn?.(pid).catch((error: unknown) => {
      // Otherwise it would run unrecorded.
      signalProcess(-pid, 'SIGKILL');
      throw error;
    });
    return {
      pid,
      logFile: options.logFile,
      exited,
      stop: (signal, timeoutMs) => stopChild(pid, exited, signal, timeoutMs),
    };
  } finally {
    await log.close();
  }
}

/**
 * Waits until a child is ready. If it ends before that, or is not ready in time, it is stopped and the error includes
 * the end of its log.
 */
export async function waitUntilReady(child: Child, check: () => Promise<boolean>, timeoutMs: number): Promise<void> {
  const name = basename(child.logFile, '.log');
  let exit: ChildExit | undefined;
  void child.exited.then((value) => (exit = value));
  try {
    await waitUntil(async () => exit !== undefined || (await check()), {
      what: `${name} to be ready`,
      timeoutMs,
      intervalMs: 100,
    });
  } catch (error) {
    await child.stop('SIGTERM', 1_000);
    throw new Error(
      `${name} did not become ready within ${timeoutMs} ms. The end of its log:\n${await lastLines(child.logFile)}`,
      { cause: error },
    );
  }
  if (exit)
    throw new Error(
      `${name} ended with ${describeExit(exit)} while starting. The end of its log:\n${await lastLines(child.logFile)}`,
    );
}

/** "exit code 1" or "SIGKILL". */
export function describeExit({ code, signal }: ChildExit): string {
  return signal ?? `exit code ${code}`;
}

async function stopChild(
  pid: number,
  exited: Promise<ChildExit>,
  signal: NodeJS.Signals,
  timeoutMs: number,
): Promise<void> {
  let ended = false;
  void exited.then(() => (ended = true));
  await Promise.resolve();
  if (ended) return;
  signalProcess(pid, signal);
  const killTimer = setTimeout(() => signalProcess(-pid, 'SIGKILL'), timeoutMs);
  await exited;
  clearTimeout(killTimer);
}
