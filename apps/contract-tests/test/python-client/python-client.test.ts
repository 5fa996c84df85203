import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { repositoryRoot } from '@scheduling/stack';
import { createCrm } from '@scheduling/test-stack/crm';
import { expect, inject, it } from 'vitest';

/** PYTHON_CLIENT is a Python in which the package and its tools are installed. */
it('the client for Python passes its tests', async () => {
  const [crm, limited] = await Promise.all([createCrm(), createCrm({ requestsPerMinute: 1 })]);
  const settings = {
    SCHEDULING_URL: inject('stack').gateway,
    CRM: crm.crmId,
    KEY: crm.key,
    LIMITED_CRM: limited.crmId,
    LIMITED_KEY: limited.key,
  };
  const tests = spawn(process.env['PYTHON_CLIENT']!, ['-m', 'pytest', '-p', 'no:cacheprovider'], {
    cwd: join(repositoryRoot, 'clients/python'),
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 590_000,
  });
  const [status] = (await once(tests, 'exit')) as [number | null];
  expect(status).toBe(0);
}, 600_000);
