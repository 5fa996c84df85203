import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '@scheduling/embedded';
import { type Service, services, type StackInfo } from '@scheduling/stack';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readStackFile } from '../src/stack-file.ts';
import { aliveUnits, type Command, startCommand } from '@scheduling/test-stack/command';

let folder: string;
const commands: Command[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stack-'));
});

afterAll(async () => {
  for (const command of commands) {
    command.process.kill('SIGTERM');
    await command.ended;
  }
  await rm(folder, { recursive: true, force: true });
}, 60_000);

/** Each test continues where the previous one ended: a stack takes longer to start than to test. */
describe('npm start', { timeout: 600_000 }, () => {
  let first: Command;
  let second: Command;
  let next: Command;
  let one: StackInfo;
  let two: StackInfo;
  let three: StackInfo;

  it('can be stopped while it starts', async () => {
    const interrupted = start('first');
    await waitUntil(() => interrupted.output().includes('Postgres'), { what: 'the first step', timeoutMs: 60_000 });
    interrupted.process.kill('SIGINT');
    expect(await interrupted.ended).toBe(0);
    expect(await readdir(join(folder, 'first'))).not.toContain('run.json');
    await cp(join(folder, 'first'), join(folder, 'second'), { recursive: true });
  });

  it('runs two stacks side by side, one of them empty with --fresh', async () => {
    const leftovers = ['postgres', 'nats'].map((name) => join(folder, 'second', name, 'of-an-earlier-run'));
    for (const file of leftovers) await mkdir(file, { recursive: true });
    [first, second] = [start('first'), start('second', ['--fresh'])];
    [one, two] = [await first.ready(), await second.ready()];
    for (const file of leftovers) await expect(stat(file)).rejects.toThrow(/ENOENT/);
    expect(two.apiKey).not.toBe(one.apiKey);
    expect(new Set([one.gateway, two.gateway, one.nats, two.nats, one.inbox, two.inbox]).size).toBe(6);
    expect(await aliveUnits(one)).toHaveLength(10);
    expect(await statusOf(`${one.gateway}/readyz`)).toBe(200);
    expect(await statusOf(`${two.gateway}/readyz`)).toBe(200);
    expect((await stat(join(folder, 'first', 'stack.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'first', 'demo-key'))).mode & 0o777).toBe(0o600);
  });

  it('restarts every killed service, on the same address, and updates stack.json', async () => {
    for (const service of services) {
      process.kill(one.pids[service]!, 'SIGKILL');
      const pid = await waitUntil(() => pidOf('first', service, one.pids[service]), {
        what: `${service} to be back`,
        timeoutMs: 60_000,
      });
      expect(first.output()).toContain(`${service} (process ${one.pids[service]}) ended with SIGKILL; restarting it`);
      await waitUntil(() => first.output().includes(`${service} is running again (process ${pid})`), {
        what: 'the message',
        timeoutMs: 60_000,
      });
    }
    const after = await readStackFile(join(folder, 'first'));
    expect({ ...after, pids: {} }).toEqual({ ...one, pids: {} });
    expect(await aliveUnits(after)).toHaveLength(10);
    expect(await readStackFile(join(folder, 'second'))).toEqual(two);
    one = after;
  });

  it('rejects a folder that another stack uses', async () => {
    const other = start('first');
    expect(await other.ended).toBe(1);
    expect(other.output()).toMatch(
      /^\S+first is in use by another stack \(process \d+\): stop it, or set SCHEDULING_DATA and SCHEDULING_PORT for a second one.\n$/,
    );
  });

  it('leaves nothing behind within 10 s of SIGTERM', async () => {
    const startedAt = performance.now();
    second.process.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await aliveUnits(two)).toEqual([]);
    expect(await readdir(join(folder, 'second'))).not.toContain('stack.json');
    expect(await readdir(join(folder, 'second'))).not.toContain('run.json');
  });

  it('cleans up after a killed command, keeps its data and its key, and warns of given servers that cannot be used', async () => {
    first.process.kill('SIGKILL');
    await first.ended;
    expect(await aliveUnits(one)).toHaveLength(10);

    next = start('first', [], { NATS_URL: 'nats://127.0.0.1:1', SMTP_URL: 'smtp://127.0.0.1:1' });
    three = await next.ready();
    expect(next.output()).toMatch(/an earlier run was killed and left .*gateway.* running; stopping them\n/);
    expect(await aliveUnits(one)).toEqual([]);
    expect((await aliveUnits(three)).toSorted()).toEqual([...services, 'postgres'].toSorted());
    expect(three.apiKey).toBe(one.apiKey);
    const banner = next.output().slice(next.output().indexOf('Ready.'));
    expect(banner).toMatch(
      /! NATS_URL: 127\.0\.0\.1:1 cannot be used \(.+\): events are stored and delivered once it works\.\n/,
    );
    expect(banner).toMatch(
      /! SMTP_URL: 127\.0\.0\.1:1 cannot be used \(.+\): mails are stored and sent once it works\.\n/,
    );
  });

  it('ends when its folder is removed', async () => {
    // There is no data left to restart from, and nothing may be left behind.
    await rm(join(folder, 'first'), { recursive: true, maxRetries: 5 });
    expect(await next.ended).toBe(1);
    expect(next.output()).toMatch(
      /\n\S+first was removed or replaced while the stack was running, so everything was stopped\.\n$/,
    );
    expect(await aliveUnits(three)).toEqual([]);
  });

  it('reports in one line what prevents its start', async () => {
    const program = createServer().listen(0, '127.0.0.1');
    await once(program, 'listening');
    const { port } = program.address() as AddressInfo;
    const taken = start('taken', [], { SCHEDULING_PORT: String(port) });
    expect(await taken.ended).toBe(1);
    expect(taken.output()).toBe(`port ${port} is taken by another program; stop it or set SCHEDULING_PORT\n`);
    program.close();

    const given = {
      DATABASE_URL_CALENDAR: 'postgres://user:geheim@127.0.0.1:1/calendar',
      DATABASE_URL_CUSTOMER: 'postgres://127.0.0.1:1/customer',
    };
    const unreachable = start('unreachable', [], given);
    expect(await unreachable.ended).toBe(1);
    expect(unreachable.output()).toMatch(
      /^DATABASE_URL_CALENDAR: the database at 127\.0\.0\.1:1\/calendar cannot be used \(.+\)\.\nDATABASE_URL_CUSTOMER: the database at 127\.0\.0\.1:1\/customer cannot be used \(.+\)\.\n$/,
    );
    expect(unreachable.output()).not.toContain('geheim');
    expect(await readdir(folder)).toEqual(['second']);
  });
});

function start(name: string, args: string[] = [], environment: NodeJS.ProcessEnv = {}): Command {
  const command = startCommand(join(folder, name), args, environment);
  commands.push(command);
  return command;
}

async function pidOf(name: string, service: Service, other: number | null): Promise<number | undefined> {
  const pid = (await readStackFile(join(folder, name))).pids[service];
  return pid === null || pid === other ? undefined : pid;
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}
