import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority, eventually, storeCertificate, sumSamples } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAdminClient } from '../src/demo-crm.ts';
import { playDemo } from '../src/play-demo.ts';
import { databaseServices, services } from '../src/service-table.ts';
import { runAdmin } from './command.ts';
import { startTestStack, type TestStack } from './http/start-test-stack.ts';

let folder: string;
let certificates: Record<'GRPC_TLS_CERT_FILE' | 'GRPC_TLS_KEY_FILE' | 'GRPC_TLS_CA_FILE', string>;
let stack: TestStack;

/** Puts certificates of a new authority where the services find them. */
async function renew(): Promise<typeof certificates> {
  const authority = await createCertificateAuthority();
  const { certificate, key, authorities } = await storeCertificate(folder, await authority.issue(...databaseServices), authority);
  return { GRPC_TLS_CERT_FILE: certificate, GRPC_TLS_KEY_FILE: key, GRPC_TLS_CA_FILE: authorities };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mutual-tls-'));
  certificates = await renew();
  stack = await startTestStack(certificates);
}, 400_000);
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

describe('the whole stack with mutual TLS', { timeout: 180_000 }, () => {
  it('books an appointment and delivers the confirmation', async () => {
    expect(await playDemo(stack.info, 'tls', () => undefined)).toMatchObject({ to: [{ address: 'grace-tls@example.com' }] });
  });

  it('answers nobody who has no certificate', async () => {
    using admin = createAdminClient(stack.info.services.identity);
    await expect(admin.listCrms({})).rejects.toMatchObject({ code: 'service.unavailable' });
    const environment = { SCHEDULING_DATA: stack.dataDir };
    expect(await runAdmin(environment, 'crm', 'list')).toMatchObject({ code: 1, output: expect.stringMatching(/does not answer/) as string });
    expect(await runAdmin({ ...environment, ...certificates }, 'crm', 'list')).toMatchObject({ code: 0, output: expect.stringMatching(/^demo +Demo/m) as string });
  });

  it('goes on when all certificates are replaced, by those of another authority', async () => {
    const expiries = () => Promise.all(services.map(readExpiry));
    const before = await expiries();
    await renew();
    await eventually(async () => (await expiries()).forEach((expiry, index) => expect(expiry).toBeGreaterThan(before[index]!)));
    await eventually(() => playDemo(stack.info, 'renewed', () => undefined));
  });
});

async function readExpiry(service: (typeof services)[number]): Promise<number | undefined> {
  const metrics = await (await fetch(`${stack.info.operations[service]}/metrics`)).text();
  return sumSamples(metrics, 'scheduling_grpc_certificate_expiry_timestamp_seconds');
}
