import { ChannelCredentials, experimental, ServerCredentials } from '@grpc/grpc-js';
import { FatalError, type Logger, type Metrics } from '@scheduling/runtime';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { Gauge } from 'prom-client';
import type { TlsFiles } from './tls-files.ts';

/** How a process proves its identity, and verifies its peers. Disposal stops watching the files. */
export interface RpcCredentials extends Disposable {
  server: ServerCredentials;
  channel: ChannelCredentials;
  /** Whether both sides of a call have certificates, so that a server knows who calls. */
  mutual: boolean;
}

export interface CredentialsOptions {
  /** Undefined: plain text in both directions. */
  files: TlsFiles | undefined;
  logger: Logger;
  /** Where the expiry of the certificate is reported. */
  metrics?: Metrics;
  /** How often the files are read again; 10 s by default. */
  refreshMs?: number;
}

/**
 * Loads the credentials of a process. With files, every call uses mutual TLS: a server accepts only clients with a
 * certificate of the authorities, and a client only servers with a certificate of the authorities that contains the
 * name in the address. Changed files are used for new connections as soon as they match each other.
 *
 * @throws FatalError if a file cannot be read or the files do not match
 */
export function openCredentials({ files, logger, metrics, refreshMs = 10_000 }: CredentialsOptions): RpcCredentials {
  if (files === undefined) {
    if (metrics) showExpiry(metrics, () => Number.POSITIVE_INFINITY);
    return {
      server: ServerCredentials.createInsecure(),
      channel: ChannelCredentials.createInsecure(),
      mutual: false,
      [Symbol.dispose]: () => undefined,
    };
  }
  const provider = createProvider(readMaterial(files));
  const timer = setInterval(() => refresh(provider, files, logger), refreshMs).unref();
  if (metrics) showExpiry(metrics, () => expiryOf(provider.material).getTime() / 1_000);
  return {
    server: experimental.createCertificateProviderServerCredentials(provider, provider, true),
    channel: experimental.createCertificateProviderChannelCredentials(provider, provider),
    mutual: true,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

interface Material {
  certificate: Buffer;
  privateKey: Buffer;
  caCertificate: Buffer;
}

/** Throws unless the files match: a partial renewal must not be used. */
function readMaterial(files: TlsFiles): Material {
  try {
    const [certificate, privateKey, caCertificate] = [files.certificate, files.key, files.authorities].map((file) =>
      readFileSync(file),
    ) as [Buffer, Buffer, Buffer];
    createSecureContext({ cert: certificate, key: privateKey, ca: caCertificate });
    return { certificate, privateKey, caCertificate };
  } catch (error) {
    throw new FatalError(`the files of GRPC_TLS_* cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

interface Provider extends experimental.CertificateProvider {
  material: Material;
  replace(material: Material): void;
}

/**
 * grpc-js has its own provider for files, but that one refuses all connections while the files are partially renewed.
 */
function createProvider(material: Material): Provider {
  const authorityListeners = new Set<experimental.CaCertificateUpdateListener>();
  const identityListeners = new Set<experimental.IdentityCertificateUpdateListener>();
  const provider: Provider = {
    material,
    replace: (next) => {
      provider.material = next;
      for (const listener of authorityListeners) listener(next);
      for (const listener of identityListeners) listener(next);
    },
    // grpc-js starts to listen only after this call has returned.
    addCaCertificateListener: (listener) => {
      authorityListeners.add(listener);
      process.nextTick(() => listener(provider.material));
    },
    removeCaCertificateListener: (listener) => void authorityListeners.delete(listener),
    addIdentityCertificateListener: (listener) => {
      identityListeners.add(listener);
      process.nextTick(() => listener(provider.material));
    },
    removeIdentityCertificateListener: (listener) => void identityListeners.delete(listener),
  };
  return provider;
}

function refresh(provider: Provider, files: TlsFiles, logger: Logger): void {
  try {
    const material = readMaterial(files);
    if (isSame(material, provider.material)) return;
    provider.replace(material);
    logger.info({ expiresAt: expiryOf(material) }, 'reloaded the gRPC certificate');
  } catch (error) {
    logger.warn({ err: error }, 'the renewed gRPC certificate is not used yet, the previous one stays in use');
  }
}

function isSame(left: Material, right: Material): boolean {
  return (
    left.certificate.equals(right.certificate) &&
    left.privateKey.equals(right.privateKey) &&
    left.caCertificate.equals(right.caCertificate)
  );
}

function showExpiry(metrics: Metrics, readSeconds: () => number): void {
  new Gauge({
    name: 'scheduling_grpc_certificate_expiry_timestamp_seconds',
    help: "Expiry time of this process's gRPC certificate, as Unix time; +Inf without mutual TLS",
    registers: [metrics],
    collect() {
      this.set(readSeconds());
    },
  });
}

function expiryOf({ certificate }: Material): Date {
  return new Date(new X509Certificate(certificate).validTo);
}
