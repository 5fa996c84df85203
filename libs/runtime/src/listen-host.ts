import { networkInterfaces } from 'node:os';
import type { EnvironmentReader } from './environment.ts';

const everyAddress = '::';

/**
 * The address to listen on, by default `::`: all addresses of this machine, of IPv6 and of IPv4. A kernel without IPv6
 * refuses it, so there it is `0.0.0.0`.
 *
 * @param interfaces of this machine
 */
export function readListenHost(
  read: EnvironmentReader,
  name: string,
  fallback = everyAddress,
  interfaces = networkInterfaces(),
): string {
  const host = read.text(name, fallback);
  return host === everyAddress && !hasIpv6(interfaces) ? '0.0.0.0' : host;
}

function hasIpv6(interfaces: ReturnType<typeof networkInterfaces>): boolean {
  return Object.values(interfaces).some((addresses) => addresses?.some(({ family }) => family === 'IPv6'));
}
