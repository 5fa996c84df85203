import type { NetworkInterfaceInfo } from 'node:os';
import { expect, it } from 'vitest';
import { readEnvironment } from './environment.ts';
import { readListenHost } from './listen-host.ts';

const ipv4 = { address: '127.0.0.1', family: 'IPv4' } as NetworkInterfaceInfo;
const ipv6 = { address: '::1', family: 'IPv6' } as NetworkInterfaceInfo;

function hostOn(interfaces: Record<string, NetworkInterfaceInfo[]>, environment: NodeJS.ProcessEnv = {}): string {
  return readEnvironment(environment, (read) => readListenHost(read, 'LISTEN_HOST', undefined, interfaces));
}

it('listens on all addresses by default, with and without IPv6, and without IPv4', () => {
  expect(hostOn({ lo: [ipv4, ipv6] })).toBe('::');
  expect(hostOn({ lo: [ipv6] })).toBe('::');
  expect(hostOn({ lo: [ipv4] })).toBe('0.0.0.0');
  expect(hostOn({ lo: [ipv4] }, { LISTEN_HOST: '::' })).toBe('0.0.0.0');
});

it('leaves any other address as it is', () => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::1', 'identity-admin'])
    expect(hostOn({ lo: [ipv4] }, { LISTEN_HOST: host })).toBe(host);
});
