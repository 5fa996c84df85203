import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ChildExit, type OnSpawn, spawnChild, waitUntilReady } from './child.ts';
import { freePort } from './free-port.ts';

export interface InboxServer extends AsyncDisposable {
  smtpUrl: string;
  /** The page that shows the mails; `/api/email` below it returns them as JSON. */
  webUrl: string;
  smtpPort: number;
  webPort: number;
  pid: number;
  exited: Promise<ChildExit>;
  stop(): Promise<void>;
}

export interface InboxOptions {
  /** Mails are stored in `<dataDir>/inbox` and are available again after a restart. */
  dataDir: string;
  smtpPort?: number;
  webPort?: number;
  onSpawn?: OnSpawn;
}

/** If it kept every mail, the inbox would be slow to start after a load test. */
const keptMails = 2_000;
const startTimeoutMs = 60_000;
const stopTimeoutMs = 2_000;

/** Starts a mail server that delivers nothing and shows everything, on 127.0.0.1 only. */
export async function startInbox({ dataDir, smtpPort, webPort, onSpawn }: InboxOptions): Promise<InboxServer> {
  const ports = { smtp: smtpPort ?? (await freePort()), web: webPort ?? (await freePort()) };
  const mailDir = join(dataDir, 'inbox');
  await mkdir(mailDir, { recursive: true, mode: 0o700 });
  const webUrl = `http://127.0.0.1:${ports.web}`;
  const child = await spawnChild({
    command: process.execPath,
    args: [
      fileURLToPath(new URL('bin/maildev.js', import.meta.resolve('maildev'))),
      `--smtp=${ports.smtp}`,
      '--ip=127.0.0.1',
      `--web=${ports.web}`,
      '--web-ip=127.0.0.1',
      `--mail-directory=${mailDir}`,
      `--max-emails=${keptMails}`,
    ],
    // maildev searches for configuration files in its working directory and its parents.
    cwd: mailDir,
    environment: { PATH: process.env.PATH, HOME: mailDir, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
    logFile: join(dataDir, 'logs', 'inbox.log'),
    // maildev prints the recipient and the subject of every mail; its errors are on stderr.
    discardStdout: true,
    onSpawn,
  });
  await waitUntilReady(
    child,
    async () => (await fetch(`${webUrl}/api/healthz`, { signal: AbortSignal.timeout(1_000) })).ok,
    startTimeoutMs,
  );
  const stop = (): Promise<void> => child.stop('SIGTERM', stopTimeoutMs);
  return {
    smtpUrl: `smtp://127.0.0.1:${ports.smtp}`,
    webUrl,
    smtpPort: ports.smtp,
    webPort: ports.web,
    pid: child.pid,
    exited: child.exited,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
