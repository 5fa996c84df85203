import type { EnvironmentReader } from '@scheduling/runtime';
import { readNatsUrl } from './nats-url.ts';

/**
 * Where NATS is, and how a process proves to it who it is. The files are read for every connection, so they may be
 * replaced while the process runs.
 */
export interface NatsSettings {
  /**
   * Begins with `nats://` or `tls://`, and may contain a user and a password, or a token, percent-encoded; several
   * servers are separated by commas.
   */
  url: string;
  /** A file with the credentials of a user (its JWT and its seed), or only with the seed of an NKey. */
  credentialsFile?: string | undefined;
  tlsFiles?: NatsTlsFiles | undefined;
}

/** Files in PEM. */
export interface NatsTlsFiles {
  /** The certificate authorities of the servers; those of Node if not given. */
  caFile?: string;
  /** The certificate of this process, for servers that demand one, and its private key. */
  certFile?: string;
  keyFile?: string;
}

/** `NATS_URL`, `NATS_CREDENTIALS_FILE`, `NATS_TLS_CA_FILE`, `NATS_TLS_CERT_FILE` and `NATS_TLS_KEY_FILE`. */
export function readNatsSettings(read: EnvironmentReader): NatsSettings {
  return { url: readNatsUrl(read), ...readFiles(read) };
}

/** Undefined without `NATS_URL`. */
export function readOptionalNatsSettings(read: EnvironmentReader): NatsSettings | undefined {
  const url = readNatsUrl(read, '');
  const files = readFiles(read);
  return url === '' ? undefined : { url, ...files };
}

function readFiles(read: EnvironmentReader): Pick<NatsSettings, 'credentialsFile' | 'tlsFiles'> {
  const credentialsFile = read.text('NATS_CREDENTIALS_FILE', '');
  const caFile = read.text('NATS_TLS_CA_FILE', '');
  const [certificate, key] = ['NATS_TLS_CERT_FILE', 'NATS_TLS_KEY_FILE'] as const;
  const hasPair = [read.text(certificate, ''), read.text(key, '')].some((file) => file !== '');
  const tlsFiles: NatsTlsFiles = {
    ...(caFile !== '' && { caFile }),
    // One is useless without the other, so now both are required.
    ...(hasPair && { certFile: read.text(certificate), keyFile: read.text(key) }),
  };
  return {
    ...(credentialsFile !== '' && { credentialsFile }),
    ...(Object.keys(tlsFiles).length > 0 && { tlsFiles }),
  };
}
