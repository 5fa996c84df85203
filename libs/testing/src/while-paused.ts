import { processHasStopped, signalProcess, waitUntil } from '@scheduling/embedded';

const stopMs = 10_000;

/**
 * Stops processes until it is disposed; returns when the last of them has stopped, because until then they could still
 * answer. Passes over processes that end meanwhile.
 */
export async function pauseProcesses(pids: number[]): Promise<Disposable> {
  const paused = {
    [Symbol.dispose]: () => {
      for (const pid of pids) signalProcess(pid, 'SIGCONT');
    },
  };
  const haveStopped = async (): Promise<boolean> => (await Promise.all(pids.map(processHasStopped))).every(Boolean);
  try {
    for (const pid of pids) signalProcess(pid, 'SIGSTOP');
    await waitUntil(haveStopped, { what: 'the processes to stop', timeoutMs: stopMs });
    return paused;
  } catch (error) {
    paused[Symbol.dispose]();
    throw error;
  }
}

/** Does something while processes are stopped. */
export async function whilePaused<Result>(pids: number[], action: () => Promise<Result>): Promise<Result> {
  using _ = await pauseProcesses(pids);
  return await action();
}
