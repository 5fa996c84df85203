import { BlockList } from 'node:net';

/**
 * The addresses that no request to a stranger's endpoint may reach: everything that is not a public unicast address, by
 * the registries of special purpose addresses of IANA. A rule for IPv4 also matches the IPv4-mapped IPv6 addresses
 * (::ffff:10.0.0.1).
 */
export const blockedNetworks = new BlockList();

for (const [network, prefix] of [
  ['0.0.0.0', 8], // this host
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // between a provider and its customers
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // the platform of Azure: in a public range, but it answers only to the machine itself
  ['169.254.0.0', 16], // link-local, with the metadata of cloud machines
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // relays from IPv6 to IPv4
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
] as const) {
  blockedNetworks.addSubnet(network, prefix, 'ipv4');
}

// Only 2000::/3 is public. What is below it is two ranges, because a rule that contains ::ffff:0:0/96, such as ::/3,
// also matches all of IPv4.
blockedNetworks.addRange('::', '::fffe:ffff:ffff', 'ipv6');
blockedNetworks.addRange('::1:0:0:0', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ipv6');
blockedNetworks.addSubnet('4000::', 2, 'ipv6');
blockedNetworks.addSubnet('8000::', 1, 'ipv6');

for (const [network, prefix] of [
  ['2001::', 23], // protocol assignments, with Teredo
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4, which leads to any IPv4 address
  ['3fff::', 20], // documentation
] as const) {
  blockedNetworks.addSubnet(network, prefix, 'ipv6');
}
