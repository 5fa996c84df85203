import { signalProcess } from '@scheduling/embedded';
import { repositoryRoot, type Service, type StackInfo } from '@scheduling/stack';
import { once } from 'node:events';
import { readyBanner } from './banner.ts';
import { readSettings, UsageError } from './config.ts';
import { createCommand, Interrupted, listenForInterruption } from '@scheduling/command-line';
import { createReporter } from './reporter.ts';
import { startStack } from './start-stack.ts';
import { watchCode } from './watch-code.ts';

const help = `
Environment variables:
  SCHEDULING_PORT       port of the gateway, 0 for a free one (default: 8080)
  SCHEDULING_DATA       data folder (default: .data)
  DATABASE_URL_IDENTITY, DATABASE_URL_CALENDAR, DATABASE_URL_CUSTOMER,
  DATABASE_URL_NOTIFICATION, DATABASE_URL_WEBHOOK, NATS_URL, SMTP_URL
                        servers to use instead of the embedded ones
  POSTGRES_FSYNC        off: the embedded Postgres does not wait for the disk,
                        and may lose data if the machine crashes (default: on)
  LOG_LEVEL             of the services (default: info)`;

const { fresh = false, watch = false } = createCommand(
  'npm start --',
  'Start the whole service on this machine. Ctrl-C stops it and keeps the data.',
)
  .option('--fresh', 'start with empty data: delete what earlier runs stored')
  .option('--watch', 'migrate and restart a service when its code changes (npm run dev)')
  .addHelpText('after', help)
  .parse()
  .opts<{ fresh?: boolean; watch?: boolean }>();
const reporter = createReporter(process.stdout);
const { stop, kill } = listenForInterruption();
// Registered after the stack's own listener, which kills its processes.
kill.addEventListener('abort', () => setImmediate(() => process.exit(130)));

try {
  const settings = readSettings({ fresh, watch }, process.env);
  const stack = await startStack(settings, reporter, { signal: stop, killSignal: kill });
  reporter.write(readyBanner(stack.info, stack.warnings, process.stdout));
  const end = AbortSignal.any([stop, stack.folderLost]);
  if (watch) void watchCode(repositoryRoot, (changed) => reload(changed, stack.info), end);
  if (!end.aborted) await once(end, 'abort');
  await reporter.step('shutdown', stack.stop);
  if (!stack.folderLost.aborted) process.exit(0);
  throw new UsageError(
    `${settings.dataDir} was removed or replaced while the stack was running, so everything was stopped.`,
  );
} catch (error) {
  if (error instanceof Interrupted) {
    reporter.note('stopped before everything was ready');
    process.exit(0);
  }
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError ? error.exitCode : 1);
}

/** The stack starts whatever ends again. */
function reload(changed: Service[], { pids }: StackInfo): void {
  for (const service of changed) {
    const pid = pids[service];
    if (pid !== null) signalProcess(pid, 'SIGTERM');
  }
}
