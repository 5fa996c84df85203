import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { expect, test } from 'vitest';
import { createDnsLookup, systemLookup } from './lookup.ts';

type Family = 4 | 6;

const never = new AbortController().signal;

/** A name server on this machine that answers every name with these addresses, or not at all if there is no list. */
async function startNameServer(addresses: Partial<Record<Family, string[]>>) {
  const socket = createSocket('udp4');
  const asked: Family[] = [];
  socket.on('message', (query, { address, port }) => {
    const family = query.at(-3) === 1 ? 4 : 6;
    asked.push(family);
    const found = addresses[family];
    if (found !== undefined) socket.send(answerTo(query, found), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    socket,
    asked,
    servers: [`127.0.0.1:${socket.address().port}`],
    [Symbol.asyncDispose]: async () => void socket.close(),
  };
}

/**
 * The query as an answer with these addresses, each of which refers to the name in the query. The query must have no
 * additional record.
 */
function answerTo(query: Buffer, addresses: string[]): Buffer {
  const head = Buffer.from(query);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const bytes = bytesOf(address);
    const record = Buffer.from([0xc0, 12, 0, bytes.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, bytes.length]);
    return Buffer.concat([record, bytes]);
  });
  return Buffer.concat([head, ...records]);
}

/** IPv6 addresses in full, without ::. */
function bytesOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  return Buffer.from(
    address
      .split(':')
      .map((group) => group.padStart(4, '0'))
      .join(''),
    'hex',
  );
}

test('the DNS gives the addresses of both families, IPv4 first', async () => {
  await using server = await startNameServer({ 4: ['192.0.2.1', '192.0.2.2'], 6: ['2001:db8:1:2:3:4:5:6'] });
  const addresses = await createDnsLookup(server.servers)('endpoint.example', never);
  expect(addresses.toSorted()).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8:1:2:3:4:5:6']);
  expect(addresses.at(-1)).toBe('2001:db8:1:2:3:4:5:6');
});

test('at most four addresses of each family are used', async () => {
  const many = Array.from({ length: 20 }, (_, index) => index);
  await using server = await startNameServer({
    4: many.map((index) => `192.0.2.${index}`),
    6: many.map((index) => `2001:db8:1:1:1:1:1:${index}`),
  });
  const addresses = await createDnsLookup(server.servers)('endpoint.example', never);
  expect(addresses.map(isIP)).toEqual([4, 4, 4, 4, 6, 6, 6, 6]);
});

test('one family is enough', async () => {
  await using server = await startNameServer({ 4: [], 6: ['2001:db8:1:2:3:4:5:6'] });
  await expect(createDnsLookup(server.servers)('endpoint.example', never)).resolves.toEqual(['2001:db8:1:2:3:4:5:6']);
});

test('a name without addresses has none', async () => {
  await using server = await startNameServer({ 4: [], 6: [] });
  await expect(createDnsLookup(server.servers)('endpoint.example', never)).resolves.toEqual([]);
});

test.for(['a..b', '.', '', `${'a'.repeat(64)}.example`])('%j, which is no name, has no addresses', async (name) => {
  await using server = await startNameServer({ 4: [], 6: [] });
  await expect(createDnsLookup(server.servers)(name, never)).resolves.toEqual([]);
});

test('abortion ends a lookup that is not answered', async () => {
  await using server = await startNameServer({});
  const controller = new AbortController();
  const addresses = createDnsLookup(server.servers)('endpoint.example', controller.signal);
  await once(server.socket, 'message');
  controller.abort();
  await expect(addresses).resolves.toEqual([]);
  // Not asked again, as after the time that the resolver would have waited.
  expect(server.asked.length).toBeLessThanOrEqual(2);
});

test('the operating system knows localhost', async () => {
  const addresses = await systemLookup('localhost', never);
  expect(addresses.length).toBeGreaterThan(0);
  expect(addresses.filter((address) => !['127.0.0.1', '::1'].includes(address))).toEqual([]);
});
