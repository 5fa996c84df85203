import { once } from 'node:events';
import { readyBanner } from './banner.ts';
import { readSettings, UsageError } from './config.ts';
import { Interrupted, listenForInterruption } from './interruption.ts';
import { createReporter } from './reporter.ts';
import { startStack } from './stack.ts';

const reporter = createReporter(process.stdout);
const { stop, kill } = listenForInterruption();
// After the stack's own listener, which ends its processes.
kill.addEventListener('abort', () => setImmediate(() => process.exit(130)));

try {
  const stack = await startStack(readSettings(process.argv.slice(2), process.env), reporter, { signal: stop, killSignal: kill });
  reporter.write(readyBanner(stack.info, process.stdout));
  if (!stop.aborted) await once(stop, 'abort');
  await reporter.step('shutdown', stack.stop);
  process.exit(0);
} catch (error) {
  if (error instanceof Interrupted) {
    reporter.note('stopped before everything was ready');
    process.exit(0);
  }
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError ? error.exitCode : 1);
}
