import { type Customer, CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { createMetrics, EnvironmentError, type Metrics, readEnvironment } from '@scheduling/runtime';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  eventually,
  storeCertificate,
  sumSamples,
  testLogger,
} from '@scheduling/testing';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkHealth } from '../src/health.ts';
import { createClient, hostService, openCredentials, type RpcCredentials } from '../src/index.ts';
import { startRpcServer } from '../src/server.ts';
import { readTlsFiles, type TlsFiles } from '../src/tls-files.ts';
import { someCallers, someHandlers } from './some-methods.ts';

const logger = testLogger('rpc-test');
const customer: Customer = {
  id: '1',
  providerId: 'p',
  customerReference: 'c',
  providerReference: 'p',
  userName: 'Jörg',
  version: 1,
};
const handlers = someHandlers(CustomerServiceService, { getCustomer: async () => ({ customer }) });
const callers = someCallers(CustomerServiceService, { getCustomer: ['gateway'] });
const refused = { category: 'unavailable', code: 'service.unavailable' };

describe('mutual TLS', () => {
  let authority: CertificateAuthority;
  let stranger: CertificateAuthority;
  let folder: string;
  let stack: AsyncDisposableStack;
  beforeAll(async () => {
    [authority, stranger] = await Promise.all([createCertificateAuthority(), createCertificateAuthority()]);
  });
  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    folder = await mkdtemp(join(tmpdir(), 'scheduling-test-tls-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
  });
  afterEach(() => stack.disposeAsync());

  /** The files of a service: the authority that signs its certificate, and those that it trusts. */
  async function issue(name: string, signedBy = authority, trusts = authority): Promise<TlsFiles> {
    return storeCertificate(join(folder, name), await signedBy.issue(name), trusts);
  }

  function open(files: TlsFiles | undefined): RpcCredentials {
    return stack.use(openCredentials({ files, logger, refreshMs: 50 }));
  }

  async function serve(files: TlsFiles | undefined, maxConnectionAgeMs?: number): Promise<number> {
    const services = [hostService(CustomerServiceService, callers, handlers)];
    const { port } = stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port: 0,
        logger,
        services,
        credentials: open(files),
        maxConnectionAgeMs,
      }),
    );
    return port;
  }

  function call(port: number, files: TlsFiles | undefined): Promise<unknown> {
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `127.0.0.1:${port}`, { credentials: open(files) }),
    );
    return client.getCustomer({ crmId: 'crm' });
  }

  /** Repeated, because a busy machine may not complete a handshake in the time for one call. */
  async function expectServed(port: number, files: TlsFiles): Promise<void> {
    await eventually(() => expect(call(port, files)).resolves.toEqual({ customer }));
  }

  it('accepts a client with a certificate of the same authority', async () => {
    const port = await serve(await issue('customer'));
    await expectServed(port, await issue('gateway'));
    await expect(
      checkHealth('customer', `127.0.0.1:${port}`, { credentials: open(await issue('probe')) }),
    ).resolves.toBe('SERVING');
  });

  it('rejects a client without a certificate, with one of another authority, and in plain text', async () => {
    const port = await serve(await issue('customer'));
    await expect(call(port, undefined)).rejects.toMatchObject(refused);
    await expect(call(port, await issue('stranger', stranger))).rejects.toMatchObject(refused);
    await expect(askWithoutCertificate(port, authority)).rejects.toThrow(/certificate required/);
    await expectServed(port, await issue('gateway'));
  });

  it('rejects a server of another authority, with the name of another service, or in plain text', async () => {
    const files = await issue('gateway');
    await expect(call(await serve(await issue('customer', stranger)), files)).rejects.toMatchObject(refused);
    await expect(call(await serve(await issue('calendar')), files)).rejects.toMatchObject(refused);
    await expect(call(await serve(undefined), files)).rejects.toMatchObject(refused);
  });

  it('uses renewed certificates for new connections, even of another authority', async () => {
    const server = await issue('customer');
    const port = await serve(server, 100);
    const files = await issue('gateway');
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `127.0.0.1:${port}`, { credentials: open(files) }),
    );
    await client.getCustomer({ crmId: 'crm' });
    await issue('customer', stranger, stranger);
    await eventually(async () =>
      expect(await serverCertificate(port, files)).toBe((await readCertificate(server)).fingerprint256),
    );
    await issue('gateway', stranger, stranger);
    await eventually(() => client.getCustomer({ crmId: 'crm' }));
    await expectServed(port, files);
  });

  it('keeps using the previous certificate while a renewal is incomplete', async () => {
    const server = await issue('customer');
    const before = await readCertificate(server);
    const port = await serve(server);
    const files = await issue('gateway');
    const { cert, key } = await authority.issue('customer');
    const warn = vi.spyOn(logger, 'warn');
    await writeFile(server.certificate, cert);
    await eventually(() =>
      expect(warn).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('not used yet')),
    );
    await expectServed(port, files);
    expect(await serverCertificate(port, files)).toBe(before.fingerprint256);
    await writeFile(server.key, key);
    await eventually(async () => expect(await serverCertificate(port, files)).not.toBe(before.fingerprint256));
    await expectServed(port, files);
  });

  it('does not start with files that cannot be read or do not match', async () => {
    const files = await issue('customer');
    expect(() => open({ ...files, authorities: join(folder, 'nothing.crt') })).toThrow(/GRPC_TLS.*nothing\.crt/);
    expect(() => open({ ...files, key: join(folder, 'customer', 'ca.crt') })).toThrow(/GRPC_TLS/);
    const other = await issue('calendar');
    expect(() => open({ ...files, key: other.key })).toThrow(/GRPC_TLS.*mismatch/);
  });

  it('reports when the certificate expires, which is never without one', async () => {
    const files = await issue('customer');
    const [metrics, plain] = [createMetrics('customer'), createMetrics('customer')];
    stack.use(openCredentials({ files: undefined, logger, metrics: plain }));
    expect(await shownExpiry(plain)).toBe(Number.POSITIVE_INFINITY);
    stack.use(openCredentials({ files, logger, metrics }));
    expect(await shownExpiry(metrics)).toBe(new Date((await readCertificate(files)).validTo).getTime() / 1_000);
  });
});

async function readCertificate({ certificate }: TlsFiles): Promise<X509Certificate> {
  return new X509Certificate(await readFile(certificate));
}

async function shownExpiry(metrics: Metrics): Promise<number | undefined> {
  return sumSamples(await metrics.metrics(), 'scheduling_grpc_certificate_expiry_timestamp_seconds');
}

/** The fingerprint of the certificate that a server presents to a new connection. */
async function serverCertificate(port: number, files: TlsFiles): Promise<string> {
  const [cert, key] = await Promise.all([readFile(files.certificate), readFile(files.key)]);
  const socket = connect({ host: '127.0.0.1', port, cert, key, ALPNProtocols: ['h2'], rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

/** In TLS 1.3 the rejection arrives after the handshake, instead of the first response. */
async function askWithoutCertificate(port: number, { cert }: CertificateAuthority): Promise<unknown> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'customer', ca: cert, ALPNProtocols: ['h2'] });
  try {
    return await once(socket, 'data');
  } finally {
    socket.destroy();
  }
}

describe('the variables of mutual TLS', () => {
  const read = (environment: NodeJS.ProcessEnv) => readEnvironment(environment, readTlsFiles);

  it('are required together, or absent together', () => {
    expect(read({})).toBeUndefined();
    expect(read({ GRPC_TLS_CERT_FILE: 'a', GRPC_TLS_KEY_FILE: 'b', GRPC_TLS_CA_FILE: 'c' })).toEqual({
      certificate: 'a',
      key: 'b',
      authorities: 'c',
    });
    const missing = (): unknown => read({ GRPC_TLS_KEY_FILE: 'b' });
    expect(missing).toThrow(EnvironmentError);
    expect(missing).toThrow(/GRPC_TLS_CERT_FILE is required\n.*GRPC_TLS_CA_FILE is required/);
  });
});
