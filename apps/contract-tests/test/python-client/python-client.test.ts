import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot } from '@scheduling/stack';
import { createCrm } from '@scheduling/test-stack/crm';
import { expect, inject, it } from 'vitest';
import { checkAfternoon } from '../afternoon.ts';

/** PYTHON_CLIENT is a Python in which the package and its tools are installed. */
const python = process.env['PYTHON_CLIENT']!;
const run = promisify(execFile);

it('the client for Python can be installed from a gateway that runs from this repository', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'python-client-'));
  const archive = `${inject('stack').gateway}/python-client.tar.gz`;
  await run(python, ['-m', 'pip', 'install', '--no-deps', '--no-build-isolation', '--target', folder.path, archive]);
  const program = 'import scheduling_client; print(scheduling_client.Client.__module__, scheduling_client.__file__)';
  const { stdout } = await run(python, ['-c', program], { env: { ...process.env, PYTHONPATH: folder.path } });
  expect(stdout).toBe(`scheduling_client._client ${join(folder.path, 'scheduling_client/__init__.py')}\n`);
}, 60_000);

it('the client for Python passes its tests', async () => {
  const [crm, limited] = await Promise.all([createCrm(), createCrm({ requestsPerMinute: 1 })]);
  const settings = {
    SCHEDULING_URL: inject('stack').gateway,
    CRM: crm.crmId,
    KEY: crm.key,
    LIMITED_CRM: limited.crmId,
    LIMITED_KEY: limited.key,
  };
  const tests = spawn(python, ['-m', 'pytest', '-p', 'no:cacheprovider'], {
    cwd: join(repositoryRoot, 'clients/python'),
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 590_000,
  });
  const [status] = (await once(tests, 'exit')) as [number | null];
  expect(status).toBe(0);
}, 600_000);

it('its example, with the client from that gateway, goes from an empty calendar to an erased customer', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'python-client-'));
  const archive = join(folder.path, 'client.tar.gz');
  const served = await fetch(`${inject('stack').gateway}/python-client.tar.gz`);
  await writeFile(archive, await served.bytes());
  await run('tar', ['--extract', '--gzip', '--file', archive, '--strip-components=1', '--directory', folder.path]);
  expect(await readFile(join(folder.path, 'LICENSE'), 'utf8')).toContain('Apache License');
  const installed = join(folder.path, 'installed');
  await run(python, ['-m', 'pip', 'install', '--no-deps', '--no-build-isolation', '--target', installed, archive]);
  await checkAfternoon(`PYTHONPATH='${installed}' '${python}' examples/afternoon.py`, folder.path);
}, 600_000);
