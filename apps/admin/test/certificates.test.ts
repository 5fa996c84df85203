import { createCertificateAuthority, hasIpv6, storeCertificate } from '@scheduling/testing';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { expect, it } from 'vitest';
import { checkCertificates } from '../src/doctor/check-certificates.ts';

it('the certificate of a service is checked at an IPv6 address, too', async ({ skip }) => {
  skip(!hasIpv6(), 'this machine has no IPv6');
  await using resources = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'certificates-test-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = await createCertificateAuthority();
  const certificates = await storeCertificate(folder, await authority.issue('admin'), authority);
  const server = createServer({ ...(await authority.issue('identity')), ALPNProtocols: ['h2'] }).listen(0, '::1');
  resources.defer(() => void server.close());
  await once(server, 'listening');
  const findings = await checkCertificates({
    operator: 'tester',
    gateway: undefined,
    page: undefined,
    services: { identity: `[::1]:${(server.address() as AddressInfo).port}` },
    nats: undefined,
    smtp: undefined,
    certificates,
  });
  expect(findings).toContainEqual(expect.objectContaining({ check: 'certificate of identity', level: 'ok' }));
});
