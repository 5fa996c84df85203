import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect, type ConnectionOptions } from 'node:tls';
import type { TlsFiles } from '@scheduling/rpc/tls-files';
import { reasonOf } from '@scheduling/runtime';
import type { System } from '../config.ts';
import { fault, type Finding, notChecked, ok, warning } from './finding.ts';

const timeoutMs = 3_000;
const dayMs = 24 * 60 * 60_000;
const warnDays = 14;

/**
 * Whether the certificates of the public addresses, of the services and of the operator are trusted and stay valid for a
 * while.
 */
export async function checkCertificates(system: System): Promise<Finding[]> {
  const checks = [
    ...publicCertificates(system),
    ...(system.certificates ? callCertificates(system, system.certificates) : []),
  ];
  return Promise.all(checks);
}

/** That of page only if it has a host of its own. */
function publicCertificates({ gateway, page }: System): Promise<Finding>[] {
  const ofGateway = 'certificate of the gateway';
  const hasOwnHost = page !== undefined && (gateway === undefined || new URL(page).host !== new URL(gateway).host);
  return [
    ...(gateway === undefined
      ? [Promise.resolve(notChecked(ofGateway, 'PUBLIC_URL'))]
      : certificateOf(ofGateway, gateway)),
    ...(hasOwnHost ? certificateOf('certificate of page', page) : []),
  ];
}

function certificateOf(check: string, url: string): Promise<Finding>[] {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== 'https:') return [];
  const host = withoutBrackets(hostname);
  return [lookAt(check, { host, port: Number(port || 443), servername: isIP(host) === 0 ? host : '' })];
}

/** An IPv6 address has brackets in front of a port, and none where only a host is expected. */
function withoutBrackets(host: string): string {
  return host.replace(/^\[(.+)\]$/, '$1');
}

/** The certificates of mutual TLS: those that the services present, and the one that this command presents to them. */
function callCertificates({ services }: System, files: TlsFiles): Promise<Finding>[] {
  const shown = Object.entries(services).map(async ([service, address]) => {
    const [, host = '', port] = /^(?:dns:\/\/\/)?(.*):(\d+)$/.exec(address) ?? [];
    const [cert, key, ca] = await Promise.all([
      readFile(files.certificate),
      readFile(files.key),
      readFile(files.authorities),
    ]);
    return lookAt(`certificate of ${service}`, {
      host: withoutBrackets(host),
      port: Number(port),
      servername: service,
      cert,
      key,
      ca,
      ALPNProtocols: ['h2'],
    });
  });
  const own = async (): Promise<Finding> =>
    checkExpiry('own certificate', new Date(new X509Certificate(await readFile(files.certificate)).validTo));
  return [...shown, own()];
}

async function lookAt(check: string, options: ConnectionOptions): Promise<Finding> {
  // An untrusted certificate is inspected too: a finding says more than a failed handshake.
  const socket = connect({ ...options, rejectUnauthorized: false, timeout: timeoutMs });
  socket.once('timeout', () => socket.destroy(new Error(`no response within ${timeoutMs} ms`)));
  try {
    await once(socket, 'secureConnect');
    const expiry = checkExpiry(check, new Date(socket.getPeerCertificate().valid_to));
    if (expiry.level === 'fault' || socket.authorized) return expiry;
    const remedy = 'install one for this name from an authority that clients trust, with its intermediate certificates';
    return fault(check, `is not trusted: ${reasonOf(socket.authorizationError)}`, remedy);
  } catch (error) {
    return fault(
      check,
      `cannot be read: ${reasonOf(error)}`,
      'check whether the address is correct, and whether a certificate is installed there',
    );
  } finally {
    socket.destroy();
  }
}

function checkExpiry(check: string, expiresAt: Date): Finding {
  const days = Math.floor((expiresAt.getTime() - Date.now()) / dayMs);
  const date = expiresAt.toISOString().slice(0, 10);
  const remedy = 'renew it and replace the files or the secret with it (docs/operations.md, Keys and certificates)';
  if (days < 0) return fault(check, `expired on ${date}`, remedy);
  return days < warnDays
    ? warning(check, `expires in ${days} days, on ${date}`, remedy)
    : ok(check, `valid until ${date}`);
}
