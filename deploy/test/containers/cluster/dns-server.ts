/**
 * The DNS of a cluster, in a container of its own. `calendar.cluster.test` has the addresses that were given to it by
 * `PUT /calendar`, as a headless Service has those of its ready pods, and an answer is repeated for 30 s, as CoreDNS
 * and NodeLocal DNSCache do by default. Until addresses are given, the answer is always that of the container engine,
 * for the name `calendar`.
 */
import { createSocket } from 'node:dgram';
import { resolve4 } from 'node:dns/promises';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { type Answer, decode, encode, type Packet } from 'dns-packet';

interface CachedAnswer {
  addresses: string[];
  expiresMs: number;
}

const cacheMs = 30_000;
const domain = '.cluster.test';
const ready = new Map<string, string[]>();
const cache = new Map<string, CachedAnswer>();

const socket = createSocket('udp4');
socket.on('message', (message, { port, address }) => {
  void answer(decode(message)).then((packet) => socket.send(encode(packet), port, address));
});
socket.bind(53);

createServer((request, response) => {
  const name = request.url?.slice(1) ?? '';
  void json(request).then((addresses) => {
    ready.set(name, addresses as string[]);
    // Nobody has asked for the previous ones, or needs them any more.
    if (request.headers['cache-control'] === 'no-cache') cache.delete(name);
    response.end();
  });
}).listen(8053);

async function answer({ id, questions = [] }: Packet): Promise<Packet> {
  const [question] = questions;
  const name = question?.name ?? '';
  const addresses = question?.type === 'A' && name.endsWith(domain) ? await lookUp(name.slice(0, -domain.length)) : [];
  const answers = addresses.map((data): Answer => ({ name, type: 'A', ttl: cacheMs / 1_000, data }));
  return { type: 'response', ...(id !== undefined && { id }), flags: 0x0400, questions, answers };
}

async function lookUp(name: string): Promise<string[]> {
  const addresses = ready.get(name);
  if (addresses === undefined) return resolve4(name).catch(() => []);
  const known = cache.get(name);
  if (known !== undefined && known.expiresMs > Date.now()) return known.addresses;
  cache.set(name, { addresses, expiresMs: Date.now() + cacheMs });
  return addresses;
}
