import { rm } from 'node:fs/promises';
import { readStackInfo, stackFile, type StackInfo } from '@scheduling/stack';
import { UsageError } from './config.ts';
import { writeAtomically } from './data-folder.ts';

export async function writeStackFile(dataDir: string, info: StackInfo): Promise<void> {
  await writeAtomically(stackFile(dataDir), `${JSON.stringify(info, undefined, 2)}\n`);
}

/** The stack that runs on this data folder. Throws a UsageError with a remedy if there is none. */
export async function readStackFile(dataDir: string): Promise<StackInfo> {
  try {
    return await readStackInfo(dataDir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new UsageError(
      `No stack is running on ${dataDir}. Start one in another terminal: npm start (with the same SCHEDULING_DATA, if it is set).`,
    );
  }
}

export async function removeStackFile(dataDir: string): Promise<void> {
  await rm(stackFile(dataDir), { force: true });
}
