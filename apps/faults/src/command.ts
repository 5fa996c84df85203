import { Command, InvalidArgumentError } from 'commander';

const usageExitCode = 2;
const interruptedExitCode = 130;

/** A command that ends with 2 if it does not understand its options. */
export function createCommand(name: string, description: string): Command {
  return new Command(`npm run ${name} --`)
    .description(description)
    .showHelpAfterError()
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
}

/**
 * Runs something until Ctrl-C, which aborts its signal and ends the process with 130 when everything has been stopped.
 */
export async function untilInterrupted<Result>(run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  return run(interrupted.signal).catch((error: unknown) => {
    if (!interrupted.signal.aborted) throw error;
    print('stopped');
    process.exit(interruptedExitCode);
  });
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function readNumber(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new InvalidArgumentError('must be a number greater than 0');
  return number;
}
