import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'acorn';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';

const run = promisify(execFile);
const check = join(repositoryRoot, 'apps/local/check-machine.cjs');

describe('the check before every command', () => {
  it.each([
    [
      'linux',
      '18.20.8',
      'Node 20 or newer is needed, this is 18.20.8: install a current one from https://nodejs.org.\n',
    ],
    ['darwin', '8.0.0', 'Node 20 or newer is needed, this is 8.0.0: install a current one from https://nodejs.org.\n'],
    [
      'win32',
      '26.10.0',
      'Windows is supported through WSL2 only: install it (https://learn.microsoft.com/windows/wsl/install) and run this command in it.\n',
    ],
  ])('fails with one sentence on %s with Node %s', async (platform, version, sentence) => {
    await expect(runCheck(platform, version)).rejects.toMatchObject({ code: 1, stdout: '', stderr: sentence });
  });

  it.each([
    ['linux', '20.0.0'],
    ['darwin', '26.10.0'],
  ])('prints nothing on %s with Node %s', async (platform, version) => {
    expect(await runCheck(platform, version)).toEqual({ stdout: 'went on\n', stderr: '' });
  });

  it('is written in JavaScript that the oldest Node understands', () => {
    expect(() => parse(readFileSync(check, 'utf8'), { ecmaVersion: 5, sourceType: 'script' })).not.toThrow();
  });

  it('runs before every script of package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    for (const [name, script] of Object.entries(scripts)) {
      expect(script).toBe(`node --require ./apps/local/check-machine.cjs apps/local/bootstrap.mjs ${name}`);
    }
  });
});

/** Runs the check as if on another machine, followed by another command. */
function runCheck(platform: string, version: string): Promise<{ stdout: string; stderr: string }> {
  const machine = `Object.defineProperty(process, 'platform', { value: '${platform}' });
    Object.defineProperty(process, 'versions', { value: { node: '${version}' } });`;
  return run(process.execPath, ['--eval', `${machine} require(${JSON.stringify(check)}); console.log('went on')`]);
}
