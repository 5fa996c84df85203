import { expect, inject, it } from 'vitest';
import { createAdminClient } from '../../src/demo-crm.ts';
import { runAdmin } from '../command.ts';
import { unimplemented } from '../probe-rpcs.ts';

it('operators are served on a separate port only', async () => {
  const { admin, services } = inject('stack');
  using separate = createAdminClient(admin.identity);
  expect((await separate.listCrms({})).crms.length).toBeGreaterThan(0);
  using shared = createAdminClient(services.identity);
  await expect(shared.listCrms({})).rejects.toMatchObject({ code: unimplemented });
  await expect(shared.createKey({ crmId: 'demo' })).rejects.toMatchObject({ code: unimplemented });
  const { code, output } = await runAdmin({ IDENTITY_ADDRESS: services.identity }, 'crm', 'list');
  expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(/^There is no such RPC at this address\. .* ADMIN_PORT/) as string });
});
