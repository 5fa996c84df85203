import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that Linux (32768 and up) and macOS (49152 and up) use for outgoing connections: a port from that range could be in use
 * before its server listens, or while a server that died is being restarted on it.
 */
const range = { min: 20_000, max: 32_768 };
const attempts = 100;
/** Ports that were assigned already, even if nothing listens on them yet. */
const given = new Set<number>();

/** A TCP port of 127.0.0.1 on which nothing listens; a different one each time. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = randomInt(range.min, range.max);
    if (given.has(port) || !(await canListen(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port found between ${range.min} and ${range.max}`);
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
