import {
  createCertificateAuthority,
  eventually,
  startServiceProcesses,
  startTestNats,
  storeCertificate,
} from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startGateway } from './gateway-under-test.ts';

it('a gateway whose certificate the services refuse fails, and does not blame its clients', async () => {
  await using resources = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'scheduling-test-gateway-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = await createCertificateAuthority();
  const filesOf = async (name: string): Promise<Record<string, string>> => {
    const { certificate, key, authorities } = await storeCertificate(
      join(folder, name),
      await authority.issue(name),
      authority,
    );
    return { GRPC_TLS_CERT_FILE: certificate, GRPC_TLS_KEY_FILE: key, GRPC_TLS_CA_FILE: authorities };
  };
  const nats = resources.use(await startTestNats());
  const { addresses } = resources.use(
    await startServiceProcesses(['identity'], nats.url, { environment: await filesOf('identity') }),
  );
  const ask = async (name: string): Promise<unknown> => {
    const gateway = resources.use(
      await startGateway({ NATS_URL: nats.url('gateway'), ...addresses, ...(await filesOf(name)) }),
    );
    // A busy machine may need longer for the first connection than a request has.
    return eventually(async () => {
      const response = await fetch(`${gateway.url}/crms/one/user/u`, { headers: { 'x-service-client-id': 'wrong' } });
      expect(response.status).not.toBe(503);
      return response.json();
    });
  };
  expect(await ask('calendar')).toMatchObject({ status: 500, code: 'internal' });
  expect(await ask('gateway')).toMatchObject({ status: 401, code: 'key.invalid' });
});
