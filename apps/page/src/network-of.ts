import { isIPv6 } from 'node:net';

/** What an address is counted as: an IPv4 address itself, and the /64 of an IPv6 address, which one subscriber has. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%', 1);
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const groupsOf = (part: string | undefined): string[] => (part ? part.split(':') : []);
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  // An IPv4 address at the end stands for two groups.
  const count = first.length + last.length + (last.at(-1)?.includes('.') ? 1 : 0);
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - count }, () => '0');
  const groups = [...first, ...zeros, ...last].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
