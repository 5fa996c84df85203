import { eventually } from '@scheduling/testing';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Sends raw bytes and reads the response until the gateway closes the connection. */
async function sendRaw(
  bytes: string | Buffer,
): Promise<{ status: number; head: string; problem: Record<string, unknown> }> {
  const socket = connect(gateway.port, '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk) => (answer += String(chunk)));
  socket.write(bytes);
  await once(socket, 'close');
  const [head, body] = answer.split('\r\n\r\n', 2) as [string, string];
  return {
    status: Number(head.split(' ')[1]),
    head: head.toLowerCase(),
    problem: JSON.parse(body) as Record<string, unknown>,
  };
}

describe('input that never becomes a request', () => {
  it.each([
    {
      name: 'a request without a host',
      bytes: 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n',
      status: 400,
      code: 'request.malformed',
    },
    {
      name: 'another version of HTTP',
      bytes: 'GET /livez HTTP/3.7\r\nHost: x\r\n\r\n',
      status: 505,
      code: 'request.unsupported_version',
    },
    { name: 'something that is not HTTP', bytes: 'hello\r\n\r\n', status: 400, code: 'request.malformed' },
    {
      name: 'headers that are too large',
      bytes: `GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(20_000)}\r\n\r\n`,
      status: 431,
      code: 'request.headers_too_large',
    },
    {
      name: 'an expectation that nobody knows',
      bytes: 'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n',
      status: 417,
      code: 'request.expectation_failed',
    },
    {
      name: 'headers that do not end',
      bytes: 'GET /livez HTTP/1.1\r\nHost: x\r\n',
      status: 408,
      code: 'request.timeout',
    },
  ])('answers $name with a problem', async ({ bytes, status, code }) => {
    const answer = await sendRaw(bytes);
    expect(answer).toMatchObject({ status, problem: { status, code, instance: expect.any(String) } });
    expect(answer.head).toContain('content-type: application/problem+json');
    expect(answer.head).toContain(`x-request-id: ${String(answer.problem['instance'])}`);
  });
});

describe('addresses and methods', () => {
  it('answers an unknown address with 404', async () => {
    const response = await fetch(`${gateway.url}/nowhere`);
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect(await response.json()).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: 'There is nothing at this address.',
      instance: response.headers.get('x-request-id'),
      code: 'route.not_found',
    });
  });

  it.each([
    { method: 'PATCH', path: '/crms/one/user', allow: 'POST' },
    { method: 'OPTIONS', path: '/crms/one/provider/p/timeslots/t', allow: 'DELETE, PUT' },
    { method: 'PROPFIND', path: '/crms/one/provider/p/appointments', allow: 'DELETE, GET, HEAD, POST' },
    { method: 'POST', path: '/crms/one/provider/p/appointments/withoutNotification', allow: 'DELETE, GET, HEAD, PUT' },
    { method: 'DELETE', path: '/crms/one/provider/p/appointments/a', allow: 'GET, HEAD, PUT' },
    { method: 'POST', path: '/livez', allow: 'GET, HEAD' },
    { method: 'DELETE', path: '/openapi.json', allow: 'GET, HEAD' },
  ])('answers $method $path with 405 and the allowed methods', async ({ method, path, allow }) => {
    const response = await fetch(gateway.url + path, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe(allow);
    expect(await response.json()).toMatchObject({ code: 'method.not_allowed' });
  });

  it.each([
    { path: '/crms/one/user/%zz', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/%E0%A4%A', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/%C0%AF', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/%ED%A0%80', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/\u00fc', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/\u00c3\u00bc', status: 400, code: 'request.malformed' },
    { path: '/crms/one/user/a#b', status: 400, code: 'request.malformed' },
    { path: '/nowhere?name=%FC', status: 400, code: 'request.malformed' },
    { path: '/nowhere?name=\u00fc', status: 400, code: 'request.malformed' },
    { path: '/openapi.json?name=100%', status: 400, code: 'request.malformed' },
    { path: '/livez?a#b', status: 400, code: 'request.malformed' },
    { path: `/crms/one/user/${'a'.repeat(5_000)}`, status: 414, code: 'request.address_too_long' },
  ])('answers the malformed address $path with $status', async ({ path, status, code }) => {
    const answer = await sendRaw(Buffer.from(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 'latin1'));
    expect(answer).toMatchObject({ status, problem: { code } });
  });
});

describe('requests that are sent ahead on one connection', () => {
  /**
   * Sends the bytes, closes the connection after the first response, and asks on another one how long the gateway takes
   * to answer.
   */
  async function delayOfOthers(bytes: string): Promise<number> {
    const socket = connect(gateway.port, '127.0.0.1');
    socket.write(bytes);
    await once(socket, 'data');
    socket.destroy();
    const startedMs = performance.now();
    await (await fetch(`${gateway.url}/livez`)).text();
    return performance.now() - startedMs;
  }

  it.each(['/docs', '/openapi.json', '/crms/one/user/x'])(
    'do not delay others, whose own connections are free: %s',
    async (path) => {
      // Other work on the machine may delay any of them.
      await eventually(async () =>
        expect(await delayOfOthers(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(90))).toBeLessThan(500),
      );
    },
  );

  it('are answered in their order', async () => {
    const ids = Array.from({ length: 50 }, (_, index) => `request-${index}`);
    const socket = connect(gateway.port, '127.0.0.1');
    let answers = '';
    socket.setEncoding('utf8').on('data', (chunk) => (answers += String(chunk)));
    const requests = ids.map(
      (id, index) =>
        `GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${index === 49 ? 'Connection: close\r\n' : ''}\r\n`,
    );
    socket.write(requests.join(''));
    await once(socket, 'close');
    expect([...answers.matchAll(/x-request-id: (\S+)/gi)].map(([, id]) => id)).toEqual(ids);
  });

  it('are bounded', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    let answers = '';
    socket
      .setEncoding('utf8')
      .on('data', (chunk) => (answers += String(chunk)))
      .on('error', () => undefined);
    socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
    await once(socket, 'close');
    expect(answers.split('HTTP/1.1 200').length - 1).toBeLessThan(1_000);
  });
});

describe('the request id', () => {
  it.each(['my-id-1', 'a'.repeat(128)])('is taken over if it is valid', async (id) => {
    const response = await fetch(`${gateway.url}/nowhere`, { headers: { 'x-request-id': id } });
    expect(response.headers.get('x-request-id')).toBe(id);
    expect(await response.json()).toMatchObject({ instance: id });
  });

  it.each(['a'.repeat(129), 'with space', 'ümlaut'])('is replaced if it is not', async (id) => {
    const response = await fetch(`${gateway.url}/nowhere`, { headers: { 'x-request-id': id } });
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('while the services are down', () => {
  it('answers 503 with Retry-After within 2 s, and reveals no internals', async () => {
    const response = await eventually(async () => {
      const startedAtMs = performance.now();
      const answered = await fetch(`${gateway.url}/crms/one/user/x`, { headers: { 'x-service-client-id': 'a key' } });
      expect(performance.now() - startedAtMs).toBeLessThan(2_000);
      return answered;
    });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'service.unavailable' });
    expect(text).not.toMatch(/identity|127\.0\.0\.1|ECONN|stack/);
  });

  it('stays alive and ready', async () => {
    for (const url of [gateway.url, `http://127.0.0.1:${gateway.metricsPort}`]) {
      expect((await fetch(`${url}/livez`)).status).toBe(200);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    }
  });

  it('counts requests by their pattern, not by their address', async () => {
    await fetch(`${gateway.url}/crms/one/user/secret-reference`);
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.metricsPort}/metrics`)).text();
    expect(metrics).toContain('route="/crms/:crmId/user/:reference"');
    expect(metrics).not.toContain('secret-reference');
  });

  it('answers a request without a key with 401, whatever its body', async () => {
    const response = await fetch(`${gateway.url}/crms/one/user`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('ApiKey');
    expect(await response.json()).toMatchObject({ code: 'key.missing' });
  });

  it('shows a page if a verification link cannot be checked', async () => {
    const response = await fetch(`${gateway.url}/verify-email?token=t`, {
      headers: { 'accept-language': 'fr, de-AT;q=0.8, en' },
    });
    expect(response.status).toBe(503);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await response.text()).toContain('<html lang="de">');
  });
});

describe('the form of a verification link', () => {
  it.each([
    {
      name: 'is not UTF-8',
      type: 'application/x-www-form-urlencoded',
      body: Buffer.from('token=\u00fc', 'latin1'),
      status: 400,
    },
    {
      name: 'has another charset',
      type: 'application/x-www-form-urlencoded; charset=iso-8859-1',
      body: 'token=t',
      status: 415,
    },
    {
      name: 'has the charset UTF-8',
      type: 'application/x-www-form-urlencoded; charset=UTF-8',
      body: 'token=t',
      status: 503,
    },
  ])('that $name is answered with a page and $status', async ({ type, body, status }) => {
    const response = await fetch(`${gateway.url}/verify-email`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8']);
  });
});

describe('the documentation', () => {
  it('is sent only once to a client that keeps it', async () => {
    const first = await fetch(`${gateway.url}/openapi.json`);
    const again = await fetch(`${gateway.url}/openapi.json`, {
      headers: { 'if-none-match': first.headers.get('etag')! },
    });
    expect([first.status, again.status, await again.text()]).toEqual([200, 304, '']);
  });

  it('has no other pages', async () => {
    expect((await fetch(`${gateway.url}/docs/absent.js`)).status).toBe(404);
  });
});

it('answers on the connections that clients have when it stops, and asks them to close these', async () => {
  const stopping = await startGateway();
  const agent = new Agent({ keepAlive: true });
  const ask = async (): Promise<IncomingMessage> => {
    const [response] = (await once(get(`${stopping.url}/livez`, { agent }), 'response')) as [IncomingMessage];
    await once(response.resume(), 'end');
    return response;
  };
  expect((await ask()).headers.connection).toBe('keep-alive');
  const stopped = stopping[Symbol.asyncDispose]();
  const last = await ask();
  expect([last.statusCode, last.headers.connection]).toEqual([200, 'close']);
  await stopped;
});

it('finishes a stop with open connections, and is not ready meanwhile', async () => {
  const stopping = await startGateway();
  const idle = connect(stopping.port, '127.0.0.1');
  await once(idle, 'connect');
  await fetch(`${stopping.url}/livez`);
  await stopping[Symbol.asyncDispose]();
  await expect(fetch(`${stopping.url}/livez`)).rejects.toThrow('fetch failed');
});
