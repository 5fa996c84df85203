import { takeNatsOperations } from '@scheduling/testing/nats-operations';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

interface ProxiedConnection {
  /** Forwards the request to the server, or another one in its place. */
  forward: (replacement?: string) => void;
  /** Answers the client in place of the server. */
  answer: (response: string) => void;
  /** Drops the connection; each connection has its own function. */
  close: () => void;
}

/**
 * A TCP proxy for the server at `url` whose `onRequest` decides what happens to each chunk that a client sends. Returns
 * its own URL.
 */
export async function startProxy(
  stack: AsyncDisposableStack,
  url: string,
  onRequest: (request: string, connection: ProxiedConnection) => Promise<void>,
): Promise<string> {
  const address = new URL(url);
  const proxy = createServer((client) => {
    const server = connect(Number(address.port), address.hostname);
    const close = (): void => void client.destroy();
    const handleRequests = async (): Promise<void> => {
      for await (const request of readRequests(client)) {
        await onRequest(String(request), {
          forward: (replacement) => server.write(replacement ?? request),
          answer: (response) => client.write(response),
          close,
        });
      }
    };
    server.pipe(client);
    server.on('error', () => client.destroy());
    void handleRequests()
      .finally(() => server.destroy())
      .catch(() => undefined);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  stack.defer(() => void proxy.close());
  return `nats://${address.username}:${address.password}@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

/** The operations of the NATS protocol, one by one: several may arrive in one piece. */
async function* readRequests(client: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let received: Buffer = Buffer.alloc(0);
  for await (const chunk of client) {
    const { operations, rest } = takeNatsOperations(Buffer.concat([received, chunk]));
    received = rest;
    yield* operations;
  }
}
