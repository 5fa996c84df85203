import { setTimeout as delay } from 'node:timers/promises';
import { EnvironmentError } from './environment.ts';
import type { Logger } from './logger.ts';

/**
 * The process cannot work until a human has acted, and the message says how. Never caught: the process exits with code
 * 1, and the message is its last line.
 */
export class FatalError extends Error {
  override readonly name = 'FatalError';
}

/** What a process runs: a service until it is disposed of, or a command that ends. */
export interface ProcessOptions {
  logger: Logger;
  /** Starts the service. */
  serve: () => Promise<AsyncDisposable>;
  /** Commands by their name on the command line, such as `migrate`. */
  commands?: Record<string, () => Promise<void>>;
}

/** Kubernetes kills after 30 s; a stop that takes longer than this is stuck. */
const stopTimeoutMs = 10_000;

/**
 * Runs a process to its end: `main.ts` serves, `main.ts <command>` runs that command. SIGTERM and SIGINT stop it within
 * 10 s with exit code 0; further ones change nothing, because supervisors repeat them, and what is in progress must be
 * recorded. An unhandled error is logged and ends the process with code 1: its supervisor starts a new one.
 */
export async function runProcess(read: () => ProcessOptions): Promise<void> {
  let options: ProcessOptions;
  try {
    options = read();
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const { logger } = options;
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.once(event, (error) => {
      if (error instanceof FatalError) logger.fatal(error.message);
      else logger.fatal({ err: error }, `${event}: the process exits`);
      process.exit(1);
    });
  }

  const commandName = process.argv[2];
  if (commandName === undefined) return serveUntilSignal(options);
  const command = options.commands?.[commandName];
  if (command === undefined) {
    process.stderr.write(
      `unknown command "${commandName}"; known: ${Object.keys(options.commands ?? {}).join(', ') || 'none'}\n`,
    );
    process.exitCode = 2;
    return;
  }
  await command();
}

async function serveUntilSignal({ logger, serve }: ProcessOptions): Promise<void> {
  const signal = nextSignal();
  const service = await serve();
  logger.info({ pid: process.pid }, 'started');
  logger.info({ signal: await signal }, 'stopping');
  await Promise.race([
    service[Symbol.asyncDispose](),
    delay(stopTimeoutMs, undefined, { ref: false }).then(() => {
      logger.error(`shutdown took longer than ${stopTimeoutMs} ms`);
      process.exit(1);
    }),
  ]);
  logger.info('stopped');
  // An attempt to connect to a replica that no longer exists gets no answer, cannot be cancelled, and would keep the
  // process alive for minutes.
  process.exit();
}

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve);
  });
}
