import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that Linux (32768 and up) and macOS (49152 and up) use for outgoing connections: a port from that
 * range could be in use before its server listens, or while a server that died is being restarted on it.
 */
const range = { min: 20_000, max: 32_768 };
/**
 * A process takes its ports from blocks that belong to it: it listens on the first port of a block until it exits. Time
 * passes between the choice of a port and the moment its server listens, and another process that starts its own
 * servers meanwhile must not choose it too.
 */
const blockSize = 64;
const attempts = 100;
/**
 * The ports of this process's newest block that were not assigned yet, even if nothing listens on the assigned ones.
 */
let unassigned: number[] = [];
let claiming: Promise<void> | undefined;

/**
 * A TCP port of 127.0.0.1 on which nothing listens; a different one each time, in this process and in all that run
 * beside it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = unassigned.shift();
    if (port === undefined) {
      claiming ??= claimBlock().finally(() => {
        claiming = undefined;
      });
      await claiming;
      continue;
    }
    const server = await listen(port);
    if (!server) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

async function claimBlock(): Promise<void> {
  const blocks = Math.floor((range.max - range.min) / blockSize);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const first = range.min + blockSize * randomInt(blocks);
    const claim = await listen(first);
    if (!claim) continue;
    claim.unref();
    unassigned = Array.from({ length: blockSize - 1 }, (_, index) => first + 1 + index);
    return;
  }
  throw new Error(`no free ports found between ${range.min} and ${range.max}`);
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
