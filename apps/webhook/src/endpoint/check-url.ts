import { isIP } from 'node:net';
import { blockedNetworks } from './blocked-networks.ts';

const maxLength = 2_048;

/**
 * What is wrong with the URL of an endpoint, as the detail of a field error, or undefined. It must be an https URL of
 * at most 2,048 characters, without user info and fragment, on port 443 or from 1024, and its host must not be an inner
 * one. Where a name leads is checked at delivery: see post.ts.
 *
 * `allowPrivate`, for development, also permits http, every port and every host.
 */
export function checkUrl(text: string, { allowPrivate }: { allowPrivate: boolean }): string | undefined {
  if (text.length > maxLength) return `must not be longer than ${maxLength} characters`;
  const url = URL.parse(text);
  // The parser also accepts spaces around the URL and another number of slashes, which the author cannot have meant.
  if (url === null || !/^https?:\/\/[^\s/\\]\S*$/i.test(text) || (url.protocol === 'http:' && !allowPrivate)) {
    return allowPrivate ? 'must be an http or https URL' : 'must be an https URL';
  }
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or a password';
  if (text.includes('#')) return 'must not contain a fragment';
  const host = hostOf(url);
  if (host === '.') return 'must have a host';
  if (allowPrivate) return undefined;
  if (url.port !== '' && Number(url.port) < 1_024) return 'must have port 443, or a port from 1024';
  return isInner(host) ? 'must have a public host' : undefined;
}

/** The host as sockets expect it: IPv6 addresses without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The parser has already normalised every notation of an address, such as 0x7f.1. */
function isInner(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? /(^|\.)(localhost|local|internal)\.?$/.test(host)
    : blockedNetworks.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
