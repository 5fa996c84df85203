import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, spawnChild, waitUntil } from '@scheduling/embedded';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { supervise } from './supervise.ts';

let folder: string;
let children: Child[];
let messages: string[];
let supervision: AbortController;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'supervise-'));
  children = [];
  messages = [];
  supervision = new AbortController();
});

afterEach(async () => {
  supervision.abort();
  for (const child of children) await child.stop('SIGKILL', 1_000);
  await rm(folder, { recursive: true, force: true });
});

it('restarts a killed process, and reports it', async () => {
  const first = await start();
  const watch = watchOver(first, start);
  process.kill(first.pid, 'SIGKILL');
  await waitUntil(() => messages.length === 2, { what: 'the restart', timeoutMs: 30_000 });
  expect(messages).toEqual([
    `sleeper (process ${first.pid}) ended with SIGKILL; restarting it`,
    `sleeper is running again (process ${children[1]!.pid})`,
  ]);
  supervision.abort();
  await watch;
});

it('retries if the restart fails', async () => {
  const first = await start();
  let attempts = 0;
  const watch = watchOver(first, async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('not yet');
    return start();
  });
  process.kill(first.pid, 'SIGTERM');
  await waitUntil(() => children.length === 2 && messages.length === 3, {
    what: 'the second attempt',
    timeoutMs: 30_000,
  });
  expect(messages[1]).toBe('sleeper failed to start: not yet');
  supervision.abort();
  await watch;
});

it('does not restart a process that ends after the supervision', async () => {
  const first = await start();
  const watch = watchOver(first, start);
  supervision.abort();
  await first.stop('SIGTERM', 1_000);
  await watch;
  expect(children).toHaveLength(1);
  expect(messages).toEqual([]);
});

async function start(): Promise<Child> {
  const child = await spawnChild({
    command: process.execPath,
    args: ['-e', 'setInterval(() => {}, 1000)'],
    cwd: folder,
    environment: {},
    logFile: join(folder, 'sleeper.log'),
  });
  children.push(child);
  return child;
}

function watchOver(child: Child, restart: () => Promise<Child>): Promise<void> {
  return supervise(child, {
    name: 'sleeper',
    restart,
    say: (message) => messages.push(message),
    signal: supervision.signal,
  });
}
