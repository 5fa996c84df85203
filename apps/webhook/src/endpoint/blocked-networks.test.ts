import { isIP } from 'node:net';
import { expect, test } from 'vitest';
import { blockedNetworks } from './blocked-networks.ts';

const isBlocked = (address: string): boolean => blockedNetworks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/**
 * The first and the last address of each network, and the neighbours outside, unless these belong to another blocked
 * network.
 */
test.for<[network: string, first: string, last: string, ...neighbours: string[]]>([
  ['0.0.0.0/8', '0.0.0.0', '0.255.255.255', '1.0.0.0'],
  ['10.0.0.0/8', '10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0/10', '100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0/8', '127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['168.63.129.16/32', '168.63.129.16', '168.63.129.16', '168.63.129.15', '168.63.129.17'],
  ['169.254.0.0/16', '169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0/12', '172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0/24', '192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0/24', '192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.88.99.0/24', '192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0/16', '192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0/15', '198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0/24', '198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0/24', '203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0/4', '224.0.0.0', '239.255.255.255', '223.255.255.255'],
  ['240.0.0.0/4', '240.0.0.0', '255.255.255.255'],
  ['below the IPv4-mapped addresses', '::', '::fffe:ffff:ffff'],
  ['above the IPv4-mapped addresses', '::1:0:0:0', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2000::'],
  ['64:ff9b::/96, translation to IPv4', '64:ff9b::', '64:ff9b::ffff:ffff'],
  ['::/96, formerly compatible with IPv4', '::1', '::ffff:ffff'],
  [
    '2001::/23',
    '2001::',
    '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:200::',
  ],
  [
    '2001:db8::/32',
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db9::',
  ],
  [
    '2002::/16',
    '2002::',
    '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2003::',
  ],
  [
    '3fff::/20',
    '3fff::',
    '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff:1000::',
  ],
  ['4000::/2', '4000::', '7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['8000::/1', '8000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::/7, unique local', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fe80::/10, link-local', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2606:4700::1111'],
])('%s is blocked, and its public neighbours are not', ([, first, last, ...neighbours]) => {
  expect([first, last].map(isBlocked)).toEqual([true, true]);
  expect(neighbours.filter(isBlocked)).toEqual([]);
});

test('IPv4-mapped IPv6 addresses are what they are in IPv4', () => {
  const blocked = [
    '::ffff:0.0.0.0',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '::ffff:255.255.255.255',
  ];
  const open = ['::ffff:1.0.0.0', '::ffff:8.8.8.8', '::ffff:808:808', '::ffff:223.255.255.255'];
  expect(blocked.filter((address) => !isBlocked(address))).toEqual([]);
  expect(open.filter(isBlocked)).toEqual([]);
});

test('a zone does not hide an address', () => {
  expect(isBlocked('fe80::1%eth0')).toBe(true);
});
