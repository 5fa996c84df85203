import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Transform } from 'node:stream';

/**
 * The way from one process to another: a TCP proxy at an address of its own. Like a Service of Kubernetes it connects
 * to one of the processes that are ready at that moment; a connection stays with its process. Without one, connections
 * are refused.
 */
export interface Link extends AsyncDisposable {
  port: number;
  /**
   * From now on nothing is passed on, in either direction, and no connection is closed or refused, as if the other
   * machine had gone without a word.
   */
  silence(): void;
  /** Ends all connections that were silent, and passes on what comes with new ones. */
  restore(): void;
  /**
   * Passes nothing on with the present connections, ever, as if another machine had taken the place of the one that is
   * gone. The target notices it by its keepalive.
   */
  abandon(): void;
  /** Closes all connections, in the middle of whatever they transfer. */
  cut(): void;
}

interface Pair {
  client: Socket;
  /** Undefined if nobody was asked to connect. */
  server?: Socket;
}

/** How long a machine takes to notice that another one is gone. */
const keepAliveMs = 25_000;

/**
 * @param targets the ports of the processes that are ready
 * @param transform changes what a client sends
 */
export async function openLink(targets: () => readonly number[], transform?: () => Transform): Promise<Link> {
  let isSilent = false;
  let turn = 0;
  const pairs = new Set<Pair>();
  const abandoned = new Set<Pair>();
  const closeAll = (of: Set<Pair>): void => {
    for (const { client, server } of of) {
      reset(client);
      server?.destroy();
    }
    of.clear();
  };
  const server = createServer((client) => {
    const pair: Pair = { client: prepare(client) };
    pairs.add(pair);
    client.once('close', () => pairs.delete(pair));
    if (isSilent) return;
    const ports = targets();
    const port = ports[turn++ % ports.length];
    if (port === undefined) return reset(client);
    pair.server = prepare(connect(port, '127.0.0.1'));
    join(pair as Required<Pair>, transform?.(), () => !abandoned.has(pair));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      isSilent = true;
      for (const pair of pairs) stopPassing(pair);
    },
    restore: () => {
      isSilent = false;
      closeAll(pairs);
    },
    abandon: () => {
      for (const pair of pairs) {
        stopPassing(pair);
        abandoned.add(pair);
        setTimeout(() => pair.server?.destroy(), keepAliveMs).unref();
      }
      pairs.clear();
    },
    cut: () => closeAll(pairs),
    [Symbol.asyncDispose]: async () => {
      closeAll(pairs);
      closeAll(abandoned);
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function prepare(socket: Socket): Socket {
  return socket.setNoDelay(true).on('error', () => undefined);
}

/** Passes on what either side sends, and its end if that is wanted. */
function join({ client, server }: Required<Pair>, transform: Transform | undefined, isJoined: () => boolean): void {
  (transform === undefined ? client : client.pipe(transform)).pipe(server).pipe(client);
  client.once('close', () => isJoined() && server.destroy());
  server.once('close', () => isJoined() && client.destroy());
  server.once('error', () => isJoined() && reset(client));
}

function stopPassing({ client, server }: Pair): void {
  client.unpipe().pause();
  server?.unpipe().pause();
}

/** Node 26.10 leaks a socket that is reset while its end is being sent, and then never exits. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
