import { signalProcess, waitUntil } from '@scheduling/embedded';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** The NODE_OPTIONS of a process for which {@link heldBytes} is called. It loads `report-memory.cjs`. */
export const reportMemory = `--expose-gc --require="${fileURLToPath(import.meta.resolve('./report-memory.cjs'))}"`;

const reportTimeoutMs = 60_000;

/**
 * The objects in a process and the buffers outside of its heap, in bytes, without garbage. Several processes may write
 * to its log.
 */
export async function heldBytes({ pid, logFile }: { pid: number; logFile: string }): Promise<number> {
  const reports = async (): Promise<string[]> =>
    (await readFile(logFile, 'utf8')).match(new RegExp(String.raw`(?<="pid":${pid},"heldBytes":)\d+`, 'g')) ?? [];
  const earlier = (await reports()).length;
  signalProcess(pid, 'SIGUSR2');
  return Number(
    await waitUntil(async () => (await reports())[earlier], {
      what: `the memory of process ${pid}`,
      timeoutMs: reportTimeoutMs,
    }),
  );
}
