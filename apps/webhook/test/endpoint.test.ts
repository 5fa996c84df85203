import { freePort } from '@scheduling/embedded';
import {
  type Certificate,
  type CertificateAuthority,
  createCertificateAuthority,
  eventually,
} from '@scheduling/testing';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  setGlobalProxyFromEnv,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, BlockList, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createSecureContext, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { blockedNetworks } from '../src/endpoint/blocked-networks.ts';
import type { Lookup } from '../src/endpoint/lookup.ts';
import { createPoster, type Poster, type PostResult } from '../src/endpoint/post.ts';

const body = JSON.stringify({ id: 1, text: 'Grüße \u{1f600}' });
const never = new AbortController().signal;
const anyDuration = { durationMs: expect.any(Number) as number };

let authority: CertificateAuthority;
let certificate: Certificate;

beforeAll(async () => {
  authority = await createCertificateAuthority();
  certificate = await authority.issue('endpoint.test', 'localhost');
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** A poster that reaches servers on this machine, by the name endpoint.test unless there is a lookup. */
const openPoster = (lookup: Lookup = toLoopback): Poster =>
  createPoster({ allowPrivate: true, lookup, ca: authority.cert });

const toLoopback: Lookup = async () => ['127.0.0.1'];

const send = (poster: Poster, url: string, signal = never): Promise<PostResult> =>
  poster.post(url, { 'x-signature': 'abc' }, body, signal);

/** Listens, and notes the local address of each connection at once, before anything is received. */
async function listen(server: Server, { host = '127.0.0.1', port: wantedPort = 0 } = {}) {
  const accepted: string[] = [];
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    accepted.push(socket.localAddress!.replace('::ffff:', ''));
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => {}));
  server.listen({ host, port: wantedPort });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    accepted,
    sockets,
    url: `https://endpoint.test:${port}/hook`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

const listenHttps = (handle: RequestListener, at?: { host: string; port?: number }) =>
  listen(createHttpsServer(certificate, handle), at);

/**
 * A server that answers with these bytes once it has received the head of a request, and leaves the connection open.
 */
const listenRaw = (answer: (socket: TLSSocket) => void) =>
  listen(createTlsServer(certificate, (socket) => void socket.once('data', () => answer(socket))));

/** The same without TLS, as in development. */
const listenPlain = (answer: (socket: Socket) => void) =>
  listen(createTcpServer((socket) => void socket.once('data', () => answer(socket))));

/** Writes as fast as the other side reads. */
function writeEndlessly(
  socket: Socket,
  { first, next, onWritten }: { first: string; next: string; onWritten: (bytes: number) => void },
): void {
  const many = next.repeat(Math.ceil(10_000 / next.length));
  const write = (): void => {
    do onWritten(many.length);
    while (socket.write(many));
  };
  socket.on('drain', write).write(first);
  write();
}

/** A server that keeps every connection open for more requests, although the client does not want it to. */
const listenKeepAlive = () => {
  const answer = 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n';
  return listen(createTlsServer(certificate, (socket) => void socket.on('data', () => socket.write(answer))));
};

const ok: RequestListener = (request, response) => {
  request.resume();
  response.writeHead(204).end();
};

describe('a request', () => {
  test('arrives exactly as given', async () => {
    const received: { request: IncomingMessage; body: string; servername: unknown }[] = [];
    await using server = await listenHttps((request, response) => {
      void text(request).then((body) => {
        received.push({ request, body, servername: (request.socket as TLSSocket).servername });
        response.writeHead(200, { 'content-type': 'text/plain' }).end('thank you');
      });
    });
    const result = await openPoster().post(
      `${server.url}/ü?a=1&b=%20`,
      { 'X-Signature': 't=1,v1=abc', 'user-agent': 'test/1' },
      body,
      never,
    );
    expect(result).toEqual({ status: 200, ...anyDuration });
    expect(result.durationMs).toBeGreaterThanOrEqual(0);
    expect(received).toHaveLength(1);
    const [{ request, ...rest }] = received as [(typeof received)[0]];
    expect(rest).toEqual({ body, servername: 'endpoint.test' });
    expect([request.method, request.url, request.httpVersion]).toEqual(['POST', '/hook/%C3%BC?a=1&b=%20', '1.1']);
    expect(request.headers).toEqual({
      'x-signature': 't=1,v1=abc',
      'user-agent': 'test/1',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      host: `endpoint.test:${server.port}`,
      connection: 'close',
    });
  });

  test('may have a large body', async () => {
    const large = 'ä'.repeat(1_000_000);
    const received: string[] = [];
    await using server = await listenHttps((request, response) => {
      void text(request).then((body) => {
        received.push(body);
        response.end();
      });
    });
    await expect(openPoster().post(server.url, {}, large, never)).resolves.toEqual({ status: 200, ...anyDuration });
    expect(received).toEqual([large]);
  });

  test('by http in development', async () => {
    const received: string[] = [];
    await using server = await listen(
      createHttpServer((request, response) => {
        void text(request).then((body) => {
          received.push(`${request.headers.host} ${body}`);
          response.writeHead(202).end();
        });
      }),
    );
    await expect(send(openPoster(), `http://endpoint.test:${server.port}/`)).resolves.toEqual({
      status: 202,
      ...anyDuration,
    });
    expect(received).toEqual([`endpoint.test:${server.port} ${body}`]);
  });

  test('reaches localhost by the lookup of the operating system in development', async () => {
    await using server = await listenHttps(ok);
    const poster = createPoster({ allowPrivate: true, ca: authority.cert });
    await expect(send(poster, `https://localhost:${server.port}/`)).resolves.toEqual({ status: 204, ...anyDuration });
  });

  test('names the server without a dot at the end, and a literal address not at all', async () => {
    const names: string[] = [];
    const context = createSecureContext(certificate);
    const SNICallback = (name: string, done: (error: null, found: typeof context) => void): void => {
      names.push(name);
      done(null, context);
    };
    await using server = await listen(createHttpsServer({ ...certificate, SNICallback }, ok));
    await expect(send(openPoster(), `https://endpoint.test.:${server.port}/`)).resolves.toEqual({
      status: 204,
      ...anyDuration,
    });
    // The certificate is for names only.
    await expect(send(openPoster(), `https://127.0.0.1:${server.port}/`)).resolves.toEqual({
      error: 'tls',
      ...anyDuration,
    });
    expect(names).toEqual(['endpoint.test']);
    expect(server.accepted).toHaveLength(2);
  });

  test('ignores proxies of the environment', async () => {
    await using proxy = await listen(createTcpServer((socket) => socket.destroy()));
    await using secure = await listenHttps(ok);
    await using plain = await listen(createHttpServer(ok));
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const restore = setGlobalProxyFromEnv({ http_proxy: proxyUrl, https_proxy: proxyUrl });
    try {
      await expect(send(openPoster(), secure.url)).resolves.toEqual({ status: 204, ...anyDuration });
      await expect(send(openPoster(), `http://endpoint.test:${plain.port}/`)).resolves.toEqual({
        status: 204,
        ...anyDuration,
      });
    } finally {
      restore();
    }
    expect(proxy.accepted).toEqual([]);
  });

  test('has a connection of its own, even if the server keeps connections alive', async () => {
    await using server = await listenKeepAlive();
    const asked: string[] = [];
    const poster = openPoster(async (host) => {
      asked.push(host);
      return ['127.0.0.1'];
    });
    await expect(send(poster, server.url)).resolves.toEqual({ status: 200, ...anyDuration });
    await expect(send(poster, server.url)).resolves.toEqual({ status: 200, ...anyDuration });
    expect(server.accepted).toHaveLength(2);
    expect(asked).toEqual(['endpoint.test', 'endpoint.test']);
    await eventually(() => expect(server.sockets.size).toBe(0));
  });
});

describe('inner networks', () => {
  const blockedResult = { error: 'blocked', ...anyDuration };

  /** Nothing else has connected: connections are accepted in their order, so this one is the last. */
  async function expectUntouched(server: Awaited<ReturnType<typeof listen>>): Promise<void> {
    await expect(send(openPoster(), server.url)).resolves.toMatchObject({ status: expect.any(Number) });
    expect(server.accepted).toEqual(['127.0.0.1']);
  }

  const literals = [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '%31%32%37.0.0.1',
    '127。0。0。1',
    '0',
    '0.0.0.0',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[2002:7f00:1::]',
  ];

  test('cannot be reached by a literal address or as localhost', async () => {
    await using server = await listenHttps(ok, { host: '::' });
    // With the second one, only the check at the connection remains.
    for (const poster of [
      createPoster({ allowPrivate: false, ca: authority.cert }),
      createPoster({ allowPrivate: true, ca: authority.cert, blocked: blockedNetworks }),
    ]) {
      for (const host of [...literals, 'localhost', 'LOCALHOST']) {
        expect([host, await send(poster, `https://${host}:${server.port}/hook`)]).toEqual([host, blockedResult]);
      }
    }
    await expectUntouched(server);
  });

  test.for([
    { addresses: ['127.0.0.1'] },
    { addresses: ['::1'] },
    { addresses: ['0.0.0.0'] },
    { addresses: ['::'] },
    { addresses: ['::ffff:127.0.0.1'] },
    { addresses: ['::ffff:7f00:1'] },
    { addresses: ['127.0.0.1', '::1'] },
    { addresses: ['::1', '127.0.0.1'] },
    { addresses: ['10.0.0.1', '127.0.0.1', 'fd00::1', '::1'] },
    { addresses: ['169.254.169.254', '::ffff:127.0.0.1'] },
  ])('cannot be reached by a name with $addresses', async ({ addresses }) => {
    await using server = await listenHttps(ok, { host: '::' });
    const poster = createPoster({ allowPrivate: false, lookup: async () => addresses, ca: authority.cert });
    await expect(send(poster, server.url)).resolves.toEqual(blockedResult);
    await expectUntouched(server);
  });

  test('are refused before the lookup if the URL is not permitted', async () => {
    const asked: string[] = [];
    const poster = createPoster({
      allowPrivate: false,
      lookup: async (host) => {
        asked.push(host);
        return ['127.0.0.1'];
      },
    });
    for (const url of [
      'http://endpoint.test/',
      'https://endpoint.test:22/',
      'https://a:b@endpoint.test/',
      'https://x.internal/',
      'nonsense',
      '',
    ]) {
      expect([url, await send(poster, url)]).toEqual([url, blockedResult]);
    }
    expect(asked).toEqual([]);
  });

  /** Loopback by IPv4 is open for these tests, by IPv6 it stands for the inner network. */
  const ipv6Loopback = new BlockList();
  ipv6Loopback.addAddress('::1', 'ipv6');

  const guardedPoster = (lookup: Lookup): Poster =>
    createPoster({ allowPrivate: false, lookup, ca: authority.cert, blocked: ipv6Loopback });

  test.for([{ addresses: ['::1', '127.0.0.1'] }, { addresses: ['127.0.0.1', '::1'] }])(
    'are left out of $addresses',
    async ({ addresses }) => {
      await using server = await listenHttps(ok, { host: '::' });
      await expect(
        send(
          guardedPoster(async () => addresses),
          server.url,
        ),
      ).resolves.toEqual({ status: 204, ...anyDuration });
      expect(server.accepted).toEqual(['127.0.0.1']);
    },
  );

  test('are no way out if a public address refuses the connection', async () => {
    // A port that no other test has at the public address.
    await using server = await listenHttps(ok, { host: '::1', port: await freePort() });
    await expect(
      send(
        guardedPoster(async () => ['127.0.0.1', '::1']),
        server.url,
      ),
    ).resolves.toEqual(blockedResult);
    await expect(
      send(
        openPoster(async () => ['127.0.0.1', '::1']),
        server.url,
      ),
    ).resolves.toEqual({ status: 204, ...anyDuration });
    expect(server.accepted).toEqual(['::1']);
  });

  test('cannot be reached by a name whose addresses change', async () => {
    await using server = await listenHttps(ok, { host: '::' });
    const answers = ['127.0.0.1', '::1'];
    const poster = guardedPoster(async () => [answers.shift()!]);
    await expect(send(poster, server.url)).resolves.toEqual({ status: 204, ...anyDuration });
    // Asked once: the other answer is left for the second request.
    expect(answers).toEqual(['::1']);
    await expect(send(poster, server.url)).resolves.toEqual(blockedResult);
    expect(answers).toEqual([]);
    expect(server.accepted).toEqual(['127.0.0.1']);
  });

  test('cannot be reached over a connection that is still open', async () => {
    await using server = await listenKeepAlive();
    const answers = ['127.0.0.1', '::1'];
    const poster = guardedPoster(async () => [answers.shift()!]);
    await expect(send(poster, server.url)).resolves.toEqual({ status: 200, ...anyDuration });
    await expect(send(poster, server.url)).resolves.toEqual(blockedResult);
    expect(server.accepted).toHaveLength(1);
  });

  test.for([301, 302, 303, 307, 308])('cannot be reached by a redirect with %i', async (status) => {
    await using inner = await listenHttps(ok, { host: '::' });
    await using server = await listenHttps((request, response) => {
      request.resume();
      response
        .writeHead(status, { location: request.url!.endsWith('name') ? inner.url : `https://127.0.0.1:${inner.port}/` })
        .end();
    });
    // Nothing is blocked: whoever followed would arrive.
    await expect(send(openPoster(), `${server.url}?name`)).resolves.toEqual({ status, ...anyDuration });
    await expect(send(openPoster(), `${server.url}?address`)).resolves.toEqual({ status, ...anyDuration });
    expect(server.accepted).toHaveLength(2);
    await expectUntouched(inner);
  });
});

describe('an answer', () => {
  test.for([200, 204, 299, 400, 401, 404, 410, 429, 500, 503])('with the status %i is returned', async (status) => {
    await using server = await listenHttps((request, response) => {
      request.resume();
      response.writeHead(status).end();
    });
    await expect(send(openPoster(), server.url)).resolves.toEqual({ status, ...anyDuration });
  });

  test('may say in seconds or as a date when to try again', async () => {
    await using server = await listenHttps((request, response) => {
      request.resume();
      const value = request.url === '/date' ? new Date(Date.now() + 3_600_000).toUTCString() : '120';
      response.writeHead(429, { 'retry-after': value }).end();
    });
    await expect(send(openPoster(), server.url)).resolves.toEqual({
      status: 429,
      retryAfterSeconds: 120,
      ...anyDuration,
    });
    const result = await send(openPoster(), `https://endpoint.test:${server.port}/date`);
    expect(result).toEqual({ status: 429, retryAfterSeconds: expect.any(Number), ...anyDuration });
    const { retryAfterSeconds } = result as { retryAfterSeconds: number };
    expect(retryAfterSeconds).toBeGreaterThan(3_500);
    expect(retryAfterSeconds).toBeLessThanOrEqual(3_600);
  });

  test('may come before the body has been read', async () => {
    await using server = await listenHttps((_request, response) => void response.writeHead(413).end());
    await expect(openPoster().post(server.url, {}, 'x'.repeat(100_000), never)).resolves.toEqual({
      status: 413,
      ...anyDuration,
    });
  });

  test('with an endless body is cut off', async () => {
    let written = 0;
    const closed = Promise.withResolvers<void>();
    await using server = await listenHttps((request, response) => {
      request.resume();
      const chunk = Buffer.alloc(64 * 1_024);
      const write = (): void => {
        do written += chunk.length;
        while (response.write(chunk));
      };
      response.on('drain', write).on('close', closed.resolve);
      write();
    });
    await expect(send(openPoster(), server.url)).resolves.toEqual({ status: 200, ...anyDuration });
    await closed.promise;
    // What the buffers of both sides may hold.
    expect(written).toBeLessThan(16 * 1_024 * 1_024);
  });

  const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

  test.for([
    { what: 'interim responses', first: '', next: hint, result: { error: 'protocol' } },
    { what: 'other interim responses', first: '', next: 'HTTP/1.1 199 Wait\r\n\r\n', result: { error: 'protocol' } },
    {
      what: 'an interim response',
      first: 'HTTP/1.1 102 Processing\r\n',
      next: 'x: y\r\n',
      result: { error: 'protocol' },
    },
    { what: 'a head', first: 'HTTP/1.1 200 OK\r\n', next: 'x: y\r\n', result: { error: 'protocol' } },
    { what: 'an extension of a chunk', first: `${chunked}1`, next: ';x=y', result: { status: 200 } },
    {
      what: 'chunks with extensions',
      first: chunked,
      next: `1;${'x'.repeat(16_000)}\r\na\r\n`,
      result: { status: 200 },
    },
    { what: 'trailers', first: `${chunked}0\r\n`, next: 'x: y\r\n', result: { status: 200 } },
  ])('with endless $what is cut off', async ({ first, next, result }) => {
    let written = 0;
    const answer = (socket: Socket): void =>
      writeEndlessly(socket, { first, next, onWritten: (bytes) => (written += bytes) });
    await using secure = await listenRaw(answer);
    await using plain = await listenPlain(answer);
    for (const { url, sockets } of [secure, { ...plain, url: `http://endpoint.test:${plain.port}/` }]) {
      written = 0;
      await expect(send(openPoster(), url)).resolves.toEqual({ ...result, ...anyDuration });
      await eventually(() => expect(sockets.size).toBe(0));
      // What the buffers of both sides may hold.
      expect(written).toBeLessThan(16 * 1_024 * 1_024);
    }
  });

  test('may come after ten interim responses, and not after more', async () => {
    await using ten = await listenRaw((socket) => socket.end(`${hint.repeat(10)}HTTP/1.1 201 Created\r\n\r\n`));
    await expect(send(openPoster(), ten.url)).resolves.toEqual({ status: 201, ...anyDuration });
    await using eleven = await listenRaw((socket) => socket.end(`${hint.repeat(11)}HTTP/1.1 201 Created\r\n\r\n`));
    await expect(send(openPoster(), eleven.url)).resolves.toEqual({ error: 'protocol', ...anyDuration });
  });

  test.for([
    ['HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort', 200],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense', 200],
    ['HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 201 Created\r\n\r\n', 201],
    ['HTTP/1.0 200 OK\r\n\r\nold', 200],
  ] as const)('counts by its status, whatever follows: %j', async ([answer, status]) => {
    await using server = await listenRaw((socket) => socket.end(answer));
    await expect(send(openPoster(), server.url)).resolves.toEqual({ status, ...anyDuration });
  });

  test.for([
    ['nothing', ''],
    ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['no version', 'OK\r\n\r\n'],
    ['half of a head', 'HTTP/1.1 200 OK\r\ncontent-len'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    [
      'another protocol than asked for',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    ],
    ['a long header', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(8 * 1_024)}\r\n\r\n`],
    ['many headers', `HTTP/1.1 200 OK\r\n${'x: abcdefghi\r\n'.repeat(1_000)}\r\n`],
  ] as const)('that is %s is none', async ([, answer]) => {
    await using server = await listenRaw((socket) => socket.end(answer));
    await expect(send(openPoster(), server.url)).resolves.toEqual({ error: 'protocol', ...anyDuration });
  });
});

describe('a failure', () => {
  test('of the lookup', async () => {
    const failing: Lookup = async () => {
      throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
    };
    for (const lookup of [failing, async () => []]) {
      await expect(send(openPoster(lookup), 'https://endpoint.test/')).resolves.toEqual({
        error: 'dns',
        ...anyDuration,
      });
    }
  });

  test('of the connection', async () => {
    const server = await listen(createTcpServer());
    await server[Symbol.asyncDispose]();
    for (const lookup of [toLoopback, async () => ['127.0.0.1', '::1']]) {
      await expect(send(openPoster(lookup), server.url)).resolves.toEqual({ error: 'connect', ...anyDuration });
    }
    await expect(send(openPoster(), `https://127.0.0.1:${server.port}/`)).resolves.toEqual({
      error: 'connect',
      ...anyDuration,
    });
  });

  const badCertificates: [what: string, make: () => Promise<Certificate>][] = [
    ['of another authority', async () => (await createCertificateAuthority()).issue('endpoint.test')],
    ['for another name', () => authority.issue('other.test')],
    [
      'that has expired',
      async () => {
        vi.useFakeTimers({ toFake: ['Date'], now: new Date('2020-01-01') });
        const expired = await authority.issue('endpoint.test');
        vi.useRealTimers();
        return expired;
      },
    ],
  ];

  test.for(badCertificates)('of a certificate %s, before anything is sent', async ([, make]) => {
    let requests = 0;
    await using server = await listen(createHttpsServer(await make(), () => (requests += 1)));
    await expect(send(openPoster(), server.url)).resolves.toEqual({ error: 'tls', ...anyDuration });
    expect(server.accepted).toHaveLength(1);
    expect(requests).toBe(0);
  });

  test('of a certificate is one although the environment turns verification off', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    await using server = await listen(createHttpsServer(await authority.issue('other.test'), ok));
    await expect(send(openPoster(), server.url)).resolves.toEqual({ error: 'tls', ...anyDuration });
  });

  test('of a certificate that the Host header names, but the URL does not', async () => {
    await using server = await listen(createHttpsServer(await authority.issue('other.test'), ok));
    await expect(openPoster().post(server.url, { host: 'other.test' }, body, never)).resolves.toEqual({
      error: 'tls',
      ...anyDuration,
    });
  });

  test('of a server without TLS', async () => {
    await using server = await listen(createHttpServer(ok));
    await expect(send(openPoster(), server.url)).resolves.toEqual({ error: 'tls', ...anyDuration });
  });

  test('of a server that wants a certificate of the client', async () => {
    await using server = await listen(
      createHttpsServer({ ...certificate, requestCert: true, rejectUnauthorized: true, ca: authority.cert }, ok),
    );
    await expect(send(openPoster(), server.url)).resolves.toEqual({ error: 'tls', ...anyDuration });
  });

  test('of a header that HTTP does not permit, before anything is sent', async () => {
    let requests = 0;
    await using server = await listenHttps(() => (requests += 1));
    await expect(openPoster().post(server.url, { 'x-signature': 'a\r\nb: c' }, body, never)).resolves.toEqual({
      error: 'protocol',
      ...anyDuration,
    });
    expect(requests).toBe(0);
  });
});

describe('the time', () => {
  test('is limited to 10 seconds in all, whatever the server does', async () => {
    await using silent = await listen(createTcpServer((socket) => socket.resume()));
    await using withoutAnswer = await listenRaw(() => {});
    const every100Ms = (first: string, next: string) => (socket: TLSSocket) => {
      socket.write(first);
      const timer = setInterval(() => socket.write(next), 100);
      socket.on('close', () => clearInterval(timer));
    };
    await using slowHead = await listenRaw(every100Ms('HTTP/1.1 200 OK\r\n', 'x: y\r\n'));
    await using slowHint = await listenRaw(every100Ms('HTTP/1.1 103 Early Hints\r\n', 'x: y\r\n'));
    await using slowBody = await listenRaw(every100Ms('HTTP/1.1 200 OK\r\n\r\n', 'x'));
    const results = await Promise.all([
      send(
        openPoster(() => new Promise(() => {})),
        'https://endpoint.test/',
      ),
      ...[silent, withoutAnswer, slowHead, slowHint, slowBody].map(({ url }) => send(openPoster(), url)),
    ]);
    const timeout = { error: 'timeout', ...anyDuration };
    expect(results).toEqual([timeout, timeout, timeout, timeout, timeout, { status: 200, ...anyDuration }]);
    for (const { durationMs } of results) {
      expect(durationMs).toBeGreaterThan(9_900);
      expect(durationMs).toBeLessThan(15_000);
    }
    await eventually(() => {
      for (const { sockets } of [silent, withoutAnswer, slowHead, slowHint, slowBody]) expect(sockets.size).toBe(0);
    });
  });

  test('ends when the caller aborts', async () => {
    const controller = new AbortController();
    await using server = await listenRaw(() => controller.abort());
    const result = await send(openPoster(), server.url, controller.signal);
    expect(result).toEqual({ error: 'timeout', ...anyDuration });
    expect(result.durationMs).toBeLessThan(9_000);
    await eventually(() => expect(server.sockets.size).toBe(0));
  });

  test('ends when the caller aborts during the lookup, which is told so', async () => {
    const controller = new AbortController();
    const told: boolean[] = [];
    const poster = openPoster((_host, signal) => {
      signal.addEventListener('abort', () => told.push(signal.aborted));
      controller.abort();
      return new Promise(() => {});
    });
    await expect(send(poster, 'https://endpoint.test/', controller.signal)).resolves.toEqual({
      error: 'timeout',
      ...anyDuration,
    });
    expect(told).toEqual([true]);
  });

  test('is none if the caller has aborted before', async () => {
    await using server = await listenHttps(ok);
    const asked: string[] = [];
    const poster = openPoster(async (host) => {
      asked.push(host);
      return ['127.0.0.1'];
    });
    for (const url of [server.url, `https://127.0.0.1:${server.port}/`]) {
      await expect(send(poster, url, AbortSignal.abort())).resolves.toEqual({ error: 'timeout', ...anyDuration });
    }
    expect(asked).toEqual([]);
    expect(server.accepted).toEqual([]);
  });
});
