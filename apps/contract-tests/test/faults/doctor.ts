import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseServices } from '@scheduling/stack';
import {
  createCertificateAuthority,
  startServiceProcesses,
  startTestNats,
  startTestSmtp,
  storeCertificate,
} from '@scheduling/testing';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { runAdmin, runPrinted } from '@scheduling/test-stack/command';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { stackForFaults } from './stack-with-faults.ts';
import { troubles } from './troubles.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await stackForFaults();
}, 400_000);

const examine = (system: NodeJS.ProcessEnv = { SCHEDULING_DATA: stack.dataDir }) => runAdmin(system, 'doctor');

/** Examines again until it finds that: on a busy machine a service may not answer the doctor in time. */
function examineUntil(expected: RegExp, system?: NodeJS.ProcessEnv): ReturnType<typeof examine> {
  const examination = async () => {
    const report = await examine(system);
    expect(report.output).toMatch(expected);
    return report;
  };
  return vi.waitFor(examination, { timeout: 180_000 });
}

/** A finding with its remedy. */
function finding(check: string, level: string, { source: seen }: RegExp, { source: remedy }: RegExp): RegExp {
  return new RegExp(`^${check} +${level} +${seen}.*\\n +→ .*${remedy}`, 'm');
}

describe('the doctor', { timeout: 240_000 }, () => {
  it('finds nothing on a healthy system, and checks everything', async () => {
    // The practices of the other files would be found.
    await query('identity', `UPDATE provider SET phone = '+49 30 1234567'`, [], stack.info);
    // The consumers are created after the start.
    const { code, output } = await examineUntil(/^0 faults, 0 warnings, \d+ ok, 0 not checked$/m);
    for (const check of [
      'gateway',
      'page',
      ...databaseServices,
      ...databaseServices.map((service) => `schema of ${service}`),
      ...databaseServices.map((service) => `writes of ${service}`),
      ...databaseServices.map((service) => `locks of ${service}`),
      ...['archive of', 'standbys of', 'connections to'].map((what) => `${what} Postgres`),
      'stream',
      'erasures',
      'contacts in mails',
      'waiting events',
      'webhooks',
      'mail server',
    ]) {
      expect(output).toMatch(new RegExp(`^${check} +ok `, 'm'));
    }
    expect(output).toMatch(/^consumers of notification +ok +all 9 exist$/m);
    expect(output).toMatch(/^lag of calendar-customer-customer-erasure-requested +ok +nothing waits$/m);
    expect(code).toBe(0);
  });

  it('finds the same with the commands of docs/operations.md', async () => {
    const { gateway, page, smtp, admin, nats } = stack.info;
    const { host, password: PASSWORD } = new URL(nats);
    const addresses: Record<string, string> = {
      PUBLIC_URL: gateway,
      PAGE_URL: page,
      SMTP_URL: smtp,
      ...Object.fromEntries(databaseServices.map((service) => [`${service.toUpperCase()}_ADDRESS`, admin[service]])),
    };
    const here = printedCommands('doctor')
      .replaceAll(/\b([A-Z_]+)=\S+/g, (given, name: string) => (addresses[name] ? `${name}=${addresses[name]}` : given))
      .replace('127.0.0.1:4222', host);
    const examination = async () =>
      expect(await runPrinted({ PASSWORD }, here)).toEqual({
        code: 0,
        output: expect.stringMatching(/^0 faults, 0 warnings, \d+ ok, 0 not checked$/m) as string,
      });
    await vi.waitFor(examination, { timeout: 180_000 });
  });

  it.each(troubles)('names $trouble, and the remedy', async ({ cause, check, level, seen, remedy, never }) => {
    await using resources = new AsyncDisposableStack();
    const system = await cause(resources, stack);
    const { code, output } = await examineUntil(finding(check, level, seen, remedy), system ?? undefined);
    expect(code).toBe(/ FAULT /.test(output) ? 1 : 0);
    if (never !== undefined) expect(output).not.toMatch(never);
  });

  it('finds nothing any more when the troubles are over', async () => {
    const { code } = await examineUntil(/^0 faults, 0 warnings, \d+ ok, 0 not checked$/m);
    expect(code).toBe(0);
  });

  it('lists what was not checked for lack of an address, and does not count it as ok', async () => {
    await using smtp = await startTestSmtp();
    const { code, output } = await runAdmin({ SMTP_URL: smtp.url }, 'doctor');
    expect(output).toMatch(/^mail server +ok /m);
    expect(output).toMatch(/^gateway +not checked +PUBLIC_URL is not set$/m);
    expect(output).toMatch(/^page +not checked +PAGE_URL is not set$/m);
    expect(output).toMatch(/^database of calendar +not checked +CALENDAR_ADDRESS is not set$/m);
    expect(output).toMatch(/^0 faults, 0 warnings, 1 ok, \d\d not checked$/m);
    expect(code).toBe(0);
  });

  it('checks the certificates of the gateway and of mutual TLS', async () => {
    await using resources = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'doctor-test-'));
    resources.defer(() => rm(folder, { recursive: true }));
    const authority = await createCertificateAuthority();
    const store = async (name: string): Promise<Record<string, string>> => {
      const files = await storeCertificate(join(folder, name), await authority.issue(name), authority);
      return {
        GRPC_TLS_CERT_FILE: files.certificate,
        GRPC_TLS_KEY_FILE: files.key,
        GRPC_TLS_CA_FILE: files.authorities,
      };
    };
    const nats = resources.use(await startTestNats());
    const environment = await store('identity');
    const { identity } = resources.use(await startServiceProcesses(['identity'], nats.url, { environment }));
    const gateway = createHttpsServer(await authority.issue('localhost'), ({ url }, response) =>
      response.writeHead(url === '/readyz' ? 200 : 404, { 'x-robots-tag': 'noindex' }).end(),
    ).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    resources.defer(() => void gateway.close());
    const given = {
      PUBLIC_URL: `https://localhost:${(gateway.address() as AddressInfo).port}`,
      IDENTITY_ADDRESS: identity.adminAddress,
    };

    const trusting = { ...given, ...(await store('admin')), NODE_EXTRA_CA_CERTS: join(folder, 'admin', 'ca.crt') };
    const well = await runAdmin(trusting, 'doctor');
    for (const check of [
      'gateway',
      'page',
      'identity',
      'certificate of the gateway',
      'certificate of identity',
      'own certificate',
    ]) {
      expect(well.output).toMatch(new RegExp(`^${check} +ok `, 'm'));
    }
    expect(well.code).toBe(0);
    const host = new URL(given.PUBLIC_URL).host.replace('localhost', '127.0.0.1');
    const { output } = await runAdmin({ ...trusting, PAGE_URL: `https://${host}` }, 'doctor');
    expect(output).toMatch(/^certificate of page +FAULT +is not trusted/m);
    const distrusting = await runAdmin(given, 'doctor');
    expect(distrusting.output).toMatch(
      finding('certificate of the gateway', 'FAULT', /is not trusted/, /from an authority that clients trust/),
    );
    expect(distrusting.code).toBe(1);
    expect(distrusting.output).toMatch(/^identity +FAULT +does not respond/m);
  });

  it('does not wait for servers that accept connections and never answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const given = {
      PUBLIC_URL: `https://${host}`,
      CALENDAR_ADDRESS: host,
      NATS_URL: `nats://${host}`,
      SMTP_URL: `smtp://${host}`,
    };
    const { code, output } = await runAdmin(given, 'doctor');
    for (const check of ['gateway', 'page', 'calendar', 'stream', 'mail server', 'certificate of the gateway']) {
      expect(output).toMatch(new RegExp(`^${check} +FAULT `, 'm'));
    }
    expect(code).toBe(1);
    silent.close();
  });
});
