import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '@scheduling/embedded';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Service, services } from '../src/service-table.ts';
import { readStackFile } from '../src/stack-file.ts';
import { aliveUnits, type Command, startCommand } from './command.ts';

let folder: string;
const commands: Command[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stack-'));
});

afterEach(async () => {
  for (const command of commands.splice(0)) {
    command.process.kill('SIGTERM');
    await command.ended;
  }
  await rm(folder, { recursive: true, force: true });
}, 60_000);

describe('npm start', { timeout: 600_000 }, () => {
  /** Tried once more: two stacks that end within 10 s are the rule, a machine that stalls is not its breach. */
  it('runs two stacks side by side and leaves nothing behind after SIGTERM', { retry: 1 }, async () => {
    const [first, second] = [start('first'), start('second')];
    const [one, two] = [await first.ready(), await second.ready()];
    expect(new Set([one.gateway, two.gateway, one.nats, two.nats, one.inbox, two.inbox]).size).toBe(6);
    expect(await aliveUnits(one)).toHaveLength(8);
    expect(await statusOf(`${one.gateway}/readyz`)).toBe(200);
    expect(await statusOf(`${two.gateway}/readyz`)).toBe(200);
    expect((await stat(join(folder, 'first', 'stack.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'first', 'demo-key'))).mode & 0o777).toBe(0o600);

    const startedAt = performance.now();
    for (const command of [first, second]) command.process.kill('SIGTERM');
    expect(await Promise.all([first.ended, second.ended])).toEqual([0, 0]);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect([...(await aliveUnits(one)), ...(await aliveUnits(two))]).toEqual([]);
    expect(await readdir(join(folder, 'first'))).not.toContain('stack.json');
    expect(await readdir(join(folder, 'first'))).not.toContain('run.json');
  });

  it('cleans up after a command that was killed, and keeps its data and its key', async () => {
    const killed = start('data');
    const before = await killed.ready();
    killed.process.kill('SIGKILL');
    await killed.ended;
    expect(await aliveUnits(before)).toHaveLength(8);

    const next = start('data');
    const after = await next.ready();
    expect(next.output()).toMatch(/an earlier run was killed and left .*gateway.* running; stopping them\n/);
    expect(await aliveUnits(before)).toEqual([]);
    expect(await aliveUnits(after)).toHaveLength(8);
    expect(after.apiKey).toBe(before.apiKey);
    next.process.kill('SIGINT');
    expect(await next.ended).toBe(0);

    const fresh = start('data', ['--fresh']);
    expect((await fresh.ready()).apiKey).not.toBe(before.apiKey);
  });

  /** Tried again for the same reason: 5 s are the rule. */
  it('restarts every service that is killed within 5 s, on the same address, and keeps stack.json true', { retry: 2 }, async () => {
    const command = start('data');
    const before = await command.ready();
    for (const service of services) {
      process.kill(before.pids[service]!, 'SIGKILL');
      const pid = await waitUntil(() => pidOf(service, before.pids[service]), { what: `${service} to be back`, timeoutMs: 5_000 });
      expect(command.output()).toContain(`${service} (process ${before.pids[service]}) ended with SIGKILL; restarting it`);
      await waitUntil(() => command.output().includes(`${service} is running again (process ${pid})`), { what: 'the message', timeoutMs: 5_000 });
    }
    const after = await readStackFile(join(folder, 'data'));
    expect({ ...after, pids: {} }).toEqual({ ...before, pids: {} });
    expect(await aliveUnits(after)).toHaveLength(8);
  });

  it('stops in the middle of starting, starts again, and warns of given servers that cannot be used', async () => {
    const command = start('data');
    await waitUntil(() => command.output().includes('Postgres'), { what: 'the first step', timeoutMs: 60_000 });
    command.process.kill('SIGINT');
    expect(await command.ended).toBe(0);
    expect(await readdir(join(folder, 'data'))).not.toContain('run.json');

    const next = start('data', [], { NATS_URL: 'nats://127.0.0.1:1', SMTP_URL: 'smtp://127.0.0.1:1' });
    await next.ready();
    const banner = next.output().slice(next.output().indexOf('Ready.'));
    expect(banner).toMatch(/! NATS_URL: 127\.0\.0\.1:1 cannot be used \(.+\): events are stored and delivered once it works\.\n/);
    expect(banner).toMatch(/! SMTP_URL: 127\.0\.0\.1:1 cannot be used \(.+\): mails are stored and sent once it works\.\n/);
  });

  it('says in one line what keeps it from starting, or from going on', async () => {
    const program = createServer().listen(0, '127.0.0.1');
    await once(program, 'listening');
    const { port } = program.address() as AddressInfo;
    const taken = start('taken', [], { SCHEDULING_PORT: String(port) });
    expect(await taken.ended).toBe(1);
    expect(taken.output()).toBe(`port ${port} is taken by another program; stop it or set SCHEDULING_PORT\n`);
    program.close();

    const given = { DATABASE_URL_CALENDAR: 'postgres://user:geheim@127.0.0.1:1/calendar', DATABASE_URL_CUSTOMER: 'postgres://127.0.0.1:1/customer' };
    const unreachable = start('unreachable', [], given);
    expect(await unreachable.ended).toBe(1);
    expect(unreachable.output()).toMatch(
      /^DATABASE_URL_CALENDAR: the database at 127\.0\.0\.1:1\/calendar cannot be used \(.+\)\.\nDATABASE_URL_CUSTOMER: the database at 127\.0\.0\.1:1\/customer cannot be used \(.+\)\.\n$/,
    );
    expect(unreachable.output()).not.toContain('geheim');
    expect(await readdir(folder)).toEqual([]);

    const first = start('shared');
    const info = await first.ready();
    const second = start('shared');
    expect(await second.ended).toBe(1);
    expect(second.output()).toMatch(/^\S+shared is in use by another stack \(process \d+\): stop it, or set SCHEDULING_DATA and SCHEDULING_PORT for a second one.\n$/);

    // Nothing is left to start again from, and nothing may stay behind.
    await rm(join(folder, 'shared'), { recursive: true, maxRetries: 5 });
    expect(await first.ended).toBe(1);
    expect(first.output()).toMatch(/\n\S+shared was removed or replaced while the stack was running, so everything was stopped\.\n$/);
    expect(await aliveUnits(info)).toEqual([]);
  });
});

function start(name: string, args: string[] = [], environment: NodeJS.ProcessEnv = {}): Command {
  const command = startCommand(join(folder, name), args, environment);
  commands.push(command);
  return command;
}

async function pidOf(service: Service, other: number | null): Promise<number | undefined> {
  const pid = (await readStackFile(join(folder, 'data'))).pids[service];
  return pid === null || pid === other ? undefined : pid;
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}
