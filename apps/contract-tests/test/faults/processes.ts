import { childrenOf, processIsAlive, signalProcess, waitUntil } from '@scheduling/embedded';
import type { Unit } from '@scheduling/stack';
import { pauseProcesses } from '@scheduling/testing';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';

const startMs = 60_000;

/** Kills a service or a server of the stack, which is started again. */
export async function kill(stack: TestStack, unit: Unit): Promise<void> {
  for (const pid of await processesOf(stack, unit)) signalProcess(pid, 'SIGKILL');
}

/** Makes a process hang until it is disposed, as if its machine were lost. */
export async function hang(stack: TestStack, unit: Unit): Promise<Disposable> {
  return pauseProcesses(await processesOf(stack, unit));
}

/** Does something while a process hangs. */
export async function whileHanging(stack: TestStack, unit: Unit, happen: () => Promise<unknown>): Promise<void> {
  using _ = await hang(stack, unit);
  await happen();
}

async function processesOf(stack: TestStack, unit: Unit): Promise<number[]> {
  const pid = await waitUntil(() => livePid(stack, unit), { what: `${unit} to be there`, timeoutMs: startMs });
  return [pid, ...(await childrenOf(pid))];
}

/** Undefined while it is restarting. */
async function livePid(stack: TestStack, unit: Unit): Promise<number | undefined> {
  const pid = (await stack.currentInfo()).pids[unit];
  return pid !== null && (await processIsAlive(pid)) ? pid : undefined;
}
