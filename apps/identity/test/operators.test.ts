import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { createClient, isUnimplemented } from '@scheduling/rpc';
import { createMigratedDatabase, nowhere, longTimeout, testLogger } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { readConfig } from '../src/config.ts';
import { migrateIdentityDatabase } from '../src/db/migrate.ts';
import { createIdentityService } from '../src/service.ts';

const stopped = { code: 'service.unavailable' };

it('operators and services have separate ports, and both close when the service stops', async () => {
  await using resources = new AsyncDisposableStack();
  const ports = { GRPC_PORT: '0', ADMIN_PORT: '0', METRICS_PORT: '0' };
  const databaseUrl = await createMigratedDatabase('identity', migrateIdentityDatabase);
  const config = readConfig({
    LISTEN_HOST: '127.0.0.1',
    ...ports,
    DATABASE_URL: databaseUrl,
    NATS_URL: `nats://${nowhere}`,
  });
  const service = await createIdentityService(config, testLogger('identity-test'));
  resources.defer(() => service[Symbol.asyncDispose]());
  const at = (port: number) => ({
    admin: resources.use(createClient(AdminServiceService, 'identity', `127.0.0.1:${port}`, longTimeout)),
    identity: resources.use(createClient(IdentityServiceService, 'identity', `127.0.0.1:${port}`, longTimeout)),
  });
  const [forServices, forOperators] = [at(service.grpcPort), at(service.adminPort)];
  await forOperators.admin.createCrm({ crmId: 'one' });
  await expect(forOperators.identity.getCrm({ crmId: 'one' })).rejects.toSatisfy(isUnimplemented);
  await expect(forServices.identity.getCrm({ crmId: 'one' })).resolves.toMatchObject({ crm: { crmId: 'one' } });
  await expect(forServices.admin.listCrms({})).rejects.toSatisfy(isUnimplemented);

  await service[Symbol.asyncDispose]();
  await expect(forOperators.admin.listCrms({})).rejects.toMatchObject(stopped);
  await expect(forServices.identity.getCrm({ crmId: 'one' })).rejects.toMatchObject(stopped);
});
