import type { EnvironmentReader } from '@scheduling/runtime';

/** Files in PEM. They may be replaced while the process runs. */
export interface TlsFiles {
  /** This service's certificate, followed by the intermediate ones. */
  certificate: string;
  key: string;
  /** The certificate authorities that sign the certificates of all services. */
  authorities: string;
}

/** `GRPC_TLS_CERT_FILE`, `GRPC_TLS_KEY_FILE` and `GRPC_TLS_CA_FILE`: all of them, or undefined for plain-text calls. */
export function readTlsFiles(read: EnvironmentReader): TlsFiles | undefined {
  const names = { certificate: 'GRPC_TLS_CERT_FILE', key: 'GRPC_TLS_KEY_FILE', authorities: 'GRPC_TLS_CA_FILE' };
  const given = Object.values(names).filter((name) => read.text(name, '') !== '');
  if (given.length === 0) return undefined;
  // One is useless without the others, so now they are required.
  return {
    certificate: read.text(names.certificate),
    key: read.text(names.key),
    authorities: read.text(names.authorities),
  };
}
