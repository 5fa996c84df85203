import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Transform } from 'node:stream';
import { createPublishShuffler, type PublishShuffler } from './shuffle-publishes.ts';

/**
 * The way from one process to another: a TCP proxy at an address of its own. Like a Service of Kubernetes it connects to one of the processes that
 * are ready at that moment; a connection stays with its process. Without one, connections are refused.
 */
export interface Link extends AsyncDisposable {
  name: string;
  port: number;
  /** From now on nothing is passed on, in either direction, and no connection is closed or refused, as if the other machine had gone without a word. */
  silence(): void;
  /** Ends all connections that were silent, and passes on what comes with new ones. */
  restore(): void;
  /** Closes all connections, in the middle of whatever they transfer. */
  cut(): void;
  /** Puts what goes to NATS in another order. */
  shuffle: PublishShuffler;
}

export async function openLink(name: string, targets: () => readonly number[]): Promise<Link> {
  let isSilent = false;
  const sockets = new Set<Socket>();
  let turn = 0;
  const shuffle = createPublishShuffler();
  const isToNats = name.endsWith('-nats');
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.setNoDelay(true);
    return socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
  };
  const closeAll = (): void => {
    for (const socket of sockets) reset(socket);
  };
  const server = createServer((client) => {
    track(client);
    if (isSilent) return;
    const ports = targets();
    const port = ports[turn++ % ports.length];
    if (port === undefined) reset(client);
    else join(client, track(connect(port, '127.0.0.1')), isToNats ? shuffle.transform() : undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    name,
    port: (server.address() as AddressInfo).port,
    silence: () => {
      isSilent = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore: () => {
      isSilent = false;
      closeAll();
    },
    cut: closeAll,
    shuffle,
    [Symbol.asyncDispose]: async () => {
      closeAll();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Passes on what either side sends, and its end. */
function join(client: Socket, server: Socket, transform: Transform | undefined): void {
  (transform === undefined ? client : client.pipe(transform)).pipe(server).pipe(client);
  client.once('close', () => server.destroy());
  server.once('close', () => client.destroy());
  server.once('error', () => reset(client));
}

/** Node 26.10 leaks a socket that is reset while its end is being sent, and then never exits. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
