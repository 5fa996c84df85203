import { readdir, readFile } from 'node:fs/promises';
import { waitUntil } from '@scheduling/embedded';

const stopMs = 10_000;

/**
 * Does something while processes are stopped. A process goes on for a moment after it was sent a SIGSTOP, up to tens of milliseconds on a busy
 * machine, and still answers: this waits until the last of its threads has stopped. Processes that end meanwhile are passed over.
 */
export async function whilePaused<Result>(pids: number[], action: () => Promise<Result>): Promise<Result> {
  const haveStopped = async (): Promise<boolean> => (await Promise.all(pids.map(threadStates))).flat().every((state) => state === 'T');
  for (const pid of pids) signalUnlessGone(pid, 'SIGSTOP');
  try {
    await waitUntil(haveStopped, { what: 'the processes to stop', timeoutMs: stopMs });
    return await action();
  } finally {
    for (const pid of pids) signalUnlessGone(pid, 'SIGCONT');
  }
}

/** Sends a signal to a process that may end at any moment, such as a Postgres session. */
export function signalUnlessGone(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** As in /proc/PID/stat: T is stopped. Empty if the process has ended. */
async function threadStates(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const texts = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '')));
  // The state follows the name of the command, which is in parentheses and may itself contain some.
  return texts.filter((text) => text !== '').map((text) => text.slice(text.lastIndexOf(')') + 2)[0]!).filter((state) => !['X', 'Z'].includes(state));
}
