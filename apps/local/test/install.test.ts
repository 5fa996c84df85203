import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';

const run = promisify(execFile);

const node = { version: '26.10.0', integrity: 'sha512-node' };
const tool = { version: '1.0.0', integrity: 'sha512-tool', optional: true };

describe('the first command in a clone', () => {
  it('installs the packages and starts', async () => {
    await using clone = await createClone({ node, tool });
    const { stdout, stderr } = await clone.start();
    expect(stdout).toBe('started\n');
    expect(stderr).not.toContain('warning');
  });

  it.each([
    ['npm has left out', {}],
    ['npm has installed in another version', { '@scope/tool': { ...tool, version: '1.0.1' } }],
    ['npm has installed with another checksum', { '@scope/tool': { ...tool, integrity: 'sha512-else' } }],
  ])('refuses to start, also later, without a package that %s', async (_, installed) => {
    await using clone = await createClone({ node, '@scope/tool': tool }, { node, ...installed });
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(clone.start()).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('npm ci did not install @scope/tool: ') as string,
      });
    }
  });

  it('warns of a package that npm could not verify', async () => {
    await using clone = await createClone({ node, tool: { ...tool, integrity: undefined } }, { node, tool });
    const { stdout, stderr } = await clone.start();
    expect(stdout).toBe('started\n');
    expect(stderr).toContain('warning: package-lock.json has no checksum for tool ');
  });

  it.each([false, true])(
    "runs the project's Node when npm has not linked it (installed by hand: %s)",
    async (byHand) => {
      await using clone = await createClone({ node }, { node }, { linked: false });
      if (byHand) await clone.npm();
      const { stdout, stderr } = await clone.start();
      expect(stdout).toBe('started\n');
      expect(stderr.includes('installed the packages')).toBe(!byHand);
    },
  );

  it('does not miss a package for other machines, nor what only that one needs', async () => {
    const foreign = { ...tool, os: ['sunos'] };
    const locked = {
      node,
      foreign,
      single: { ...tool, cpu: 'mips' },
      'foreign/node_modules/part': { ...tool, integrity: undefined },
    };
    await using clone = await createClone(locked, { node });
    const { stdout, stderr } = await clone.start();
    expect(stdout).toBe('started\n');
    expect(stderr).not.toContain('warning');
  });
});

type Packages = Record<string, object>;

/**
 * A clone with this lockfile, in which npm is a script that installs these packages: the ones of the lockfile unless
 * others are given.
 */
async function createClone(locked: Packages, installed = locked, { linked = true } = {}) {
  const root = await mkdtemp(join(tmpdir(), 'scheduling-install-test-'));
  const npm = join(root, 'npm.js');
  await mkdir(join(root, 'apps/local/src'), { recursive: true });
  for (const file of ['bootstrap.mjs', 'lockfile.mjs'])
    await cp(join(repositoryRoot, 'apps/local', file), join(root, 'apps/local', file));
  await writeFile(join(root, 'apps/local/src/main.ts'), "console.log('started');");
  await writeFile(
    join(root, 'package.json'),
    JSON.stringify({ optionalDependencies: { other: '26.10.0', node: '26.10.0' } }),
  );
  await writeFile(join(root, 'package-lock.json'), describePackages(locked));
  await writeFile(
    npm,
    `const { mkdirSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
    rmSync('node_modules', { recursive: true, force: true });
    for (const folder of ['.bin', 'node/bin']) mkdirSync('node_modules/' + folder, { recursive: true });
    symlinkSync(process.execPath, 'node_modules/node/bin/node');
    if (${linked}) symlinkSync('../node/bin/node', 'node_modules/.bin/node');
    writeFileSync('node_modules/.package-lock.json', ${JSON.stringify(describePackages(installed))});`,
  );
  return {
    npm: () => run(process.execPath, [npm], { cwd: root }),
    start: () =>
      run(process.execPath, [join(root, 'apps/local/bootstrap.mjs'), 'start'], {
        env: { PATH: process.env['PATH'], npm_execpath: npm },
      }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

function describePackages(packages: Packages): string {
  return JSON.stringify({
    packages: Object.fromEntries(Object.entries(packages).map(([name, entry]) => [`node_modules/${name}`, entry])),
  });
}
