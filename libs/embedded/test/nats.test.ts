import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isReachable, type NatsServer, processIsAlive, startNats } from '../src/index.ts';

let dataDir: string;
const servers: NatsServer[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'embedded-nats-'));
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('embedded NATS', { timeout: 180_000 }, () => {
  it('keeps streams on disk across a stop and a crash', async () => {
    const first = await start();
    await request(first.port, '$JS.API.STREAM.CREATE.KEPT', { name: 'KEPT', subjects: ['kept'], storage: 'file' });
    await request(first.port, 'kept', { hello: 'world' });
    await first.stop();
    expect(await processIsAlive(first.pid)).toBe(false);
    expect(await isReachable(first.port)).toBe(false);

    const second = await start(first.port);
    expect(await request(second.port, '$JS.API.STREAM.INFO.KEPT', {})).toMatchObject({ state: { messages: 1 } });
    process.kill(second.pid, 'SIGKILL');
    await second.exited;
    const third = await start(first.port);
    expect(await request(third.port, '$JS.API.STREAM.INFO.KEPT', {})).toMatchObject({ config: { name: 'KEPT' } });
  });

  it('reports why it cannot start', async () => {
    const first = await start();
    await expect(start(first.port)).rejects.toThrow(
      /nats ended with exit code 1 while starting[^]*address already in use/,
    );
  });
});

async function start(port?: number): Promise<NatsServer> {
  const server = await startNats({ dataDir, port });
  servers.push(server);
  return server;
}

/** Sends one request in the text protocol of NATS, so that this library needs no client, and returns the response. */
function request(port: number, subject: string, body: object): Promise<unknown> {
  const payload = JSON.stringify(body);
  const socket = createConnection({ host: '127.0.0.1', port });
  socket.write(
    `CONNECT {"verbose":false}\r\nSUB answer 1\r\nPUB ${subject} answer ${payload.length}\r\n${payload}\r\n`,
  );
  return new Promise((resolve, reject) => {
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
      const answer = /MSG answer 1 +\d+\r\n(.*)\r\n/.exec(text)?.[1];
      if (answer === undefined) return;
      socket.destroy();
      resolve(JSON.parse(answer));
    });
    socket.once('error', reject);
  });
}
