import { DomainError } from '@scheduling/errors';
import type { Logger } from '@scheduling/runtime';
import { X509Certificate } from 'node:crypto';
import { type MethodDefinition, spanName } from './definition.ts';

/** Who makes a call. */
export interface Caller {
  /** Under mutual TLS. */
  certificate: X509Certificate | undefined;
}

/** Parses the certificate, so once for all calls that came together. */
export function callerOf(call: { getAuthContext(): { sslPeerCertificate?: { raw: Buffer } } }): Caller {
  const { sslPeerCertificate } = call.getAuthContext();
  return { certificate: sslPeerCertificate && new X509Certificate(sslPeerCertificate.raw) };
}

/**
 * Throws `caller.forbidden`, and logs it, unless the caller's certificate has one of the names: a DNS name or, if it
 * has none, the common name. Clients verify the name of a server by the same rule.
 */
export function requireCaller(
  { certificate }: Caller,
  method: MethodDefinition,
  allowed: readonly string[],
  logger: Logger,
): void {
  if (allowed.some((name) => certificate?.checkHost(name, { wildcards: false }) !== undefined)) return;
  const caller = certificate?.subjectAltName ?? certificate?.subject ?? 'no certificate';
  logger.warn({ caller, method: method.path }, 'refused a caller');
  throw new DomainError('caller.forbidden', {
    text: `The certificate of the caller (${caller}) does not permit ${spanName(method)}.`,
  });
}
