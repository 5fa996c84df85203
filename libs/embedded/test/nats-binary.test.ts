import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findNatsServer } from '../src/nats-binary.ts';

let folder: string;
let proxy: Server;
let asked: (string | undefined)[];

/** A machine with an empty PATH and an empty cache, behind a proxy that lets no request out. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nats-binary-'));
  asked = [];
  proxy = createServer((request, response) => {
    asked.push(request.url);
    response.end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  proxy.on('connect', (request, socket) => {
    asked.push(request.url);
    // Meanwhile the command polls its own servers for readiness: the network's proxy cannot reach them.
    void fetch(proxyUrl()).finally(() => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
  });
  vi.stubEnv('PATH', folder);
  vi.stubEnv('XDG_CACHE_HOME', folder);
  vi.stubEnv('NO_PROXY', undefined);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  proxy.close();
  await rm(folder, { recursive: true, force: true });
});

it.each(['HTTPS_PROXY', 'https_proxy'])(
  'downloads the release through the proxy in %s, and sends it no other requests',
  async (variable) => {
    vi.stubEnv(variable, proxyUrl());
    vi.stubEnv('HTTP_PROXY', proxyUrl());
    await expect(findNatsServer({ fallbackCacheDir: folder })).rejects.toThrow(
      /^nats-server is not installed and could not be downloaded \(GitHub: .*403.*; the package of Debian or Ubuntu: .*ENOENT\)\. Install/,
    );
    expect(asked).toEqual(['github.com:443', '/']);
  },
);

it('reports which source is tried next when one fails', async () => {
  vi.stubEnv('HTTPS_PROXY', 'http://127.0.0.1:1');
  const said: string[] = [];
  await expect(findNatsServer({ fallbackCacheDir: folder, log: (message) => said.push(message) })).rejects.toThrow(
    /ECONNREFUSED/,
  );
  expect(said).toEqual([
    expect.stringMatching(/^downloading nats-server \d+\.\d+\.\d+ from GitHub$/),
    expect.stringMatching(
      /^GitHub is not available here \(.*ECONNREFUSED.*\); using the package of Debian or Ubuntu instead$/,
    ),
    'downloading nats-server with apt-get',
    'downloading the package lists first',
  ]);
});

function proxyUrl(): string {
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}
