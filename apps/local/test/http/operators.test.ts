import { isUnimplemented } from '@scheduling/rpc';
import { expect, inject, it } from 'vitest';
import { createAdminClient } from '../../src/demo-crm.ts';
import { runAdmin } from '../command.ts';
import { unique } from './crm.ts';

it('operators are served on a separate port only', async () => {
  const { admin, services } = inject('stack');
  using separate = createAdminClient(admin.identity);
  expect((await separate.listCrms({})).crms.length).toBeGreaterThan(0);
  using shared = createAdminClient(services.identity);
  await expect(shared.listCrms({})).rejects.toSatisfy(isUnimplemented);
  await expect(shared.createKey({ crmId: 'demo' })).rejects.toSatisfy(isUnimplemented);
  const { code, output } = await runAdmin({ IDENTITY_ADDRESS: services.identity }, 'crm', 'list');
  expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(/^There is no such RPC at this address\. .* ADMIN_PORT/) as string });
});

it('operators give a CRM a retention period, and take it away', async () => {
  const environment = { IDENTITY_ADDRESS: inject('stack').admin.identity };
  const crmId = unique('crm');
  const change = (command: string, days: string) => runAdmin(environment, 'crm', command, crmId, '--anonymise-after-days', days);
  const listed = async () => (await runAdmin(environment, 'crm', 'list')).output.split('\n').find((line) => line.startsWith(crmId))!.trim();
  expect(await change('create', '36501')).toEqual({ code: 1, output: expect.stringContaining('anonymiseAfterDays') as string });
  expect(await change('create', '30')).toMatchObject({ code: 0 });
  expect(await listed()).toMatch(/ 30 days$/);
  expect(await change('update', '0')).toEqual({ code: 0, output: expect.stringContaining('within an hour') as string });
  expect(await listed()).toMatch(/ -$/);
});
