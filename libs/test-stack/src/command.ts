import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { processIsAlive, waitUntil } from '@scheduling/embedded';
import { readStackInfo, repositoryRoot, type StackInfo } from '@scheduling/stack';

/** `npm start` in a separate process, without the step that installs packages. */
export interface Command {
  process: ChildProcess;
  /** The output so far. */
  output(): string;
  /** Resolves to the contents of stack.json as soon as the stack is ready; rejects if the command ends before that. */
  ready(): Promise<StackInfo>;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | string>;
}

const readyTimeoutMs = 300_000;

/** `root` is the checkout of the repository whose command it is. */
export function startCommand(
  dataDir: string,
  args: string[] = [],
  environment: NodeJS.ProcessEnv = {},
  root = repositoryRoot,
): Command {
  const child = spawn(process.execPath, [join(root, 'apps/local/src/main.ts'), ...args], {
    env: { ...inherited(), SCHEDULING_PORT: '0', SCHEDULING_DATA: dataDir, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  let hasEnded = false;
  // `close` is emitted when the output is complete, too.
  const ended = once(child, 'close').then(([code, signal]) => {
    hasEnded = true;
    return (code ?? signal) as number | string;
  });
  const ready = async (): Promise<StackInfo> => {
    await waitUntil(() => hasEnded || output.includes('Ready.'), {
      what: 'the stack to be ready',
      timeoutMs: readyTimeoutMs,
    });
    if (hasEnded) throw new Error(`the command ended:\n${output}`);
    return readStackInfo(dataDir);
  };
  return { process: child, output: () => output, ready, ended };
}

/** Runs the admin command to completion, as an operator would. */
export function runAdmin(environment: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  return runCommand('admin', environment, ...args);
}

/** How a command ended; `output` contains stdout and stderr. */
export interface Ended {
  code: number;
  output: string;
}

/**
 * Runs commands as an operator types them. `npm run` starts the command without the step that installs packages. The
 * first one that fails ends them.
 */
export function runPrinted(environment: NodeJS.ProcessEnv, commands: string): Promise<Ended> {
  const npm = 'npm() { local command="$2"; shift 3; "$NODE" "$ROOT/apps/local/src/$command.ts" "$@"; }';
  const here = { ...environment, NODE: process.execPath, ROOT: repositoryRoot };
  return complete('bash', ['-c', ['set -eu', npm, commands].join('\n')], here);
}

/** Runs a command to completion. */
export function runCommand(
  name: 'main' | 'demo' | 'admin' | 'mails' | 'postman' | 'seed' | 'webhook-inbox',
  environment: NodeJS.ProcessEnv,
  ...args: string[]
): Promise<Ended> {
  return complete(process.execPath, [join(repositoryRoot, `apps/local/src/${name}.ts`), ...args], environment);
}

function complete(program: string, args: string[], environment: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...inherited(), NO_COLOR: '1', ...environment };
    const child = execFile(program, args, { env }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

/**
 * The environment of every command of a test: with the cache of compiled code that `npm` sets, without which each
 * process takes twice as long to start. Postgres does not wait for the disk: tests kill processes, but do not crash the
 * machine.
 */
export function inherited(): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, POSTGRES_FSYNC: 'off' };
}

/** The names of a stack's processes that are alive. */
export async function aliveUnits(info: StackInfo): Promise<string[]> {
  const units = await Promise.all(
    Object.entries(info.pids).map(async ([unit, pid]) => (pid !== null && (await processIsAlive(pid)) ? [unit] : [])),
  );
  return units.flat();
}
