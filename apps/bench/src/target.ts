import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@scheduling/embedded';
import { databaseServices, type StackInfo } from '@scheduling/stack';
import { query } from '@scheduling/test-stack/databases';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';
import { type PerProcess, readMemory } from './processes.ts';

/** What runs in a stack: the code in a folder, with environment variables. */
export interface Version {
  name: string;
  root: string;
  environment: NodeJS.ProcessEnv;
}

/** A running stack that is measured. */
export interface Target extends AsyncDisposable {
  version: Version;
  info: StackInfo;
  /** The address of a database on its server, for the superuser. */
  superuserUrl(database: string): string;
  /** Of its processes before the first case. */
  idleMemory: PerProcess;
}

/** How long the events of a load may take to be published and processed. */
const settleTimeoutMs = 180_000;

/** Starts a stack with empty data that stores commits on the disk and logs as in production. */
export async function startTarget(version: Version, signal: AbortSignal): Promise<Target> {
  const stack = await startTestStack(
    { LOG_LEVEL: 'info', POSTGRES_FSYNC: 'on', ...version.environment },
    { root: version.root, signal },
  );
  try {
    const { info } = stack;
    await requireDurable(info);
    const password = (await readFile(join(stack.dataDir, 'postgres-password'), 'utf8')).trim();
    const superuserUrl = (database: string): string => {
      const url = new URL(info.databases.calendar);
      return Object.assign(url, { username: 'scheduling', password, pathname: database }).href;
    };
    return {
      version,
      info,
      superuserUrl,
      idleMemory: await readMemory(info.pids),
      [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
    };
  } catch (error) {
    await stack[Symbol.asyncDispose]();
    throw error;
  }
}

/** A booking that is not on the disk costs less than one that is. */
async function requireDurable(info: StackInfo): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit']) {
    const [row] = await query<Record<string, string>>('calendar', `SHOW ${setting}`, [], info);
    if (row![setting] !== 'on') throw new Error(`${setting} is ${row![setting]}: the results would mean nothing`);
  }
}

/** Returns when all events are published, and all mails sent that may be sent now. */
export async function settle({ info }: Target): Promise<void> {
  for (const service of databaseServices) {
    await waitForNone(
      info,
      service,
      'SELECT count(*) FROM outbox WHERE sent_at IS NULL',
      `the events of ${service} to be published`,
    );
  }
  await waitForNone(
    info,
    'notification',
    'SELECT count(*) FROM unwritten_mail WHERE due_at <= now()',
    'the mails to be written',
  );
  await waitForNone(
    info,
    'notification',
    "SELECT count(*) FROM mail WHERE state = 'pending' AND due_at <= now()",
    'the mails to be sent',
  );
}

/** Returns when all events of a load are in the event feeds, too. */
export async function settleFeed(target: Target): Promise<void> {
  await settle(target);
  const [last] = await query<{ id: string }>(
    'calendar',
    `SELECT id FROM outbox WHERE subject LIKE '%.participation-changed%' ORDER BY id DESC LIMIT 1`,
    [],
    target.info,
  );
  if (last === undefined) return;
  const isRecorded = async (): Promise<boolean> =>
    (await query('webhook', 'SELECT FROM event WHERE id = $1', [last.id], target.info)).length > 0;
  await waitUntil(isRecorded, { what: 'the event feed', timeoutMs: settleTimeoutMs, intervalMs: 200 });
}

function waitForNone(
  info: StackInfo,
  service: (typeof databaseServices)[number],
  text: string,
  what: string,
): Promise<unknown> {
  const isDone = async (): Promise<boolean> =>
    Number((await query<{ count: string }>(service, text, [], info))[0]!.count) === 0;
  return waitUntil(isDone, { what, timeoutMs: settleTimeoutMs, intervalMs: 200 });
}
