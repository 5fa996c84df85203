import { processHasStopped, signalProcess, waitUntil } from '@scheduling/embedded';

const stopMs = 10_000;

/**
 * Does something while processes are stopped; until the last of them is, they could still answer. Passes over processes
 * that end meanwhile.
 */
export async function whilePaused<Result>(pids: number[], action: () => Promise<Result>): Promise<Result> {
  const haveStopped = async (): Promise<boolean> => (await Promise.all(pids.map(processHasStopped))).every(Boolean);
  try {
    for (const pid of pids) signalProcess(pid, 'SIGSTOP');
    await waitUntil(haveStopped, { what: 'the processes to stop', timeoutMs: stopMs });
    return await action();
  } finally {
    for (const pid of pids) signalProcess(pid, 'SIGCONT');
  }
}
