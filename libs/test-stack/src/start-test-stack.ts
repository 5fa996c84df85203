import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readStackInfo, services, type StackInfo } from '@scheduling/stack';
import { startCommand } from './command.ts';

export interface TestStack extends AsyncDisposable {
  info: StackInfo;
  dataDir: string;
  /** The same, with the processes that are running now. */
  currentInfo(): Promise<StackInfo>;
  /** The ERROR log lines of the services: each would require a human to act. */
  loggedErrors(): Promise<string[]>;
}

export interface TestStackOptions {
  /** Another checkout of the repository. */
  root?: string;
  /** Cancels the start. */
  signal?: AbortSignal;
}

/** The whole system as `npm start` runs it, with its own data and on a free port. Disposal deletes the data. */
export async function startTestStack(
  environment: NodeJS.ProcessEnv = {},
  { root, signal }: TestStackOptions = {},
): Promise<TestStack> {
  signal?.throwIfAborted();
  const dataDir = await mkdtemp(join(tmpdir(), 'http-test-'));
  const command = startCommand(
    dataDir,
    [],
    { LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'warn', ...environment },
    root,
  );
  const cancel = (): unknown => command.process.kill('SIGTERM');
  signal?.addEventListener('abort', cancel);
  const stop = async (): Promise<void> => {
    signal?.removeEventListener('abort', cancel);
    command.process.kill('SIGTERM');
    await command.ended;
    await rm(dataDir, { recursive: true, force: true });
  };
  const ready = async (): Promise<StackInfo> => {
    const info = await command.ready();
    signal?.removeEventListener('abort', cancel);
    return info;
  };
  try {
    return {
      info: await ready(),
      dataDir,
      currentInfo: () => readStackInfo(dataDir),
      loggedErrors: async () =>
        (await Promise.all(services.map((service) => errorsIn(join(dataDir, 'logs', `${service}.log`))))).flat(),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function errorsIn(logFile: string): Promise<string[]> {
  const lines = (await readFile(logFile, 'utf8')).split('\n');
  return lines.filter((line) => line.includes('"level":"error"') || line.includes('"level":"fatal"'));
}
