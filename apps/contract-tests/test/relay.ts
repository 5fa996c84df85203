import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface RelayedMessage {
  method: string;
  /** Path and query, of a response those of its request. */
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

export interface RelayedResponse extends RelayedMessage {
  status: number;
}

type Send = (message: RelayedMessage) => Promise<RelayedResponse>;

interface Changes {
  /** May send requests of its own first. */
  request?: (message: RelayedMessage, send: Send) => Promise<RelayedMessage>;
  response?: (message: RelayedMessage) => RelayedMessage;
}

/** A server between a client and another server, which can change what they send. */
export async function startRelay(target: string, changes: Changes): Promise<AsyncDisposable & { url: string }> {
  const send: Send = async ({ method, url, headers, body }) => {
    const response = await fetch(target + url, {
      method,
      headers,
      body: hasBody(method) ? new Uint8Array(body) : null,
    });
    const received = Buffer.from(await response.arrayBuffer());
    return { method, url, status: response.status, headers: endToEnd(response.headers), body: received };
  };
  const server = createServer((incoming, outgoing) => {
    void relay(incoming).then(
      ({ status, headers, body }) => outgoing.writeHead(status, headers).end(body),
      () => outgoing.destroy(),
    );
  });
  async function relay(incoming: IncomingMessage): Promise<RelayedResponse> {
    const headers = endToEnd(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
    const message = { method: incoming.method!, url: incoming.url!, headers, body: await buffer(incoming) };
    const response = await send((await changes.request?.(message, send)) ?? message);
    return { ...response, ...changes.response?.(response) };
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function hasBody(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** Without those that are about one connection or about the length and encoding of a body that may have been changed. */
function endToEnd(headers: Iterable<[string, string]>): Record<string, string> {
  const ofConnection = new Set([
    'connection',
    'content-encoding',
    'content-length',
    'host',
    'keep-alive',
    'transfer-encoding',
    'upgrade',
    'http2-settings',
  ]);
  return Object.fromEntries([...headers].filter(([name]) => !ofConnection.has(name)));
}
