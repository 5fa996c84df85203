import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** In PEM format. */
export interface Certificate {
  cert: string;
  key: string;
}

/** A certificate authority for one test; nothing else trusts it. */
export interface CertificateAuthority {
  cert: string;
  /** A certificate for services of these names, as servers and as clients. */
  issue(...names: [string, ...string[]]): Promise<Certificate>;
}

export async function createCertificateAuthority(): Promise<CertificateAuthority> {
  // A client that trusts two authorities finds the right one by its name.
  const authority = await makeCertificate(`authority ${randomUUID()}`, {
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  });
  const issue: CertificateAuthority['issue'] = (...names) =>
    makeCertificate(names[0], {
      ca: authority,
      extensions: [
        { name: 'basicConstraints', cA: false, critical: true },
        { name: 'keyUsage', digitalSignature: true, critical: true },
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        { name: 'subjectAltName', altNames: names.map((value) => ({ type: 2, value })) },
      ],
    });
  return { cert: authority.cert, issue };
}

/**
 * Writes a certificate and the trusted authorities where a service reads them, each file atomically. Calling it again
 * renews them.
 */
export async function storeCertificate(
  folder: string,
  { cert, key }: Certificate,
  trusted: CertificateAuthority,
): Promise<CertificateFiles> {
  const files = {
    certificate: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    authorities: join(folder, 'ca.crt'),
  };
  await mkdir(folder, { recursive: true });
  for (const [file, text] of [
    [files.certificate, cert],
    [files.key, key],
    [files.authorities, trusted.cert],
  ] as const) {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  }
  return files;
}

export interface CertificateFiles {
  certificate: string;
  key: string;
  authorities: string;
}

async function makeCertificate(name: string, options: Parameters<typeof generate>[1]): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...options,
  });
  return { cert: made.cert, key: made.private };
}
