import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of a connection may wait for earlier ones; a client that sends more ahead is disconnected. */
const maxWaiting = 100;

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/**
 * Handles the requests of a connection one after another, as their responses have to be sent. A client that pipelines
 * hundreds of requests gets no more of the service's time than one that waits for each response, and requests whose
 * connection is closed in the meantime are never handled. A request that waits has cost nothing but Node's parser.
 */
export function handleConnectionsInTurn(server: Server): void {
  const [handle] = server.listeners('request') as [RequestListener];
  const connections = new WeakMap<Socket, Exchange[]>();

  function proceed(socket: Socket, { request, response }: Exchange): void {
    response.once('close', () => {
      const next = connections.get(socket)?.shift();
      if (next === undefined || socket.destroyed) connections.delete(socket);
      else proceed(socket, next);
    });
    handle(request, response);
  }

  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    const { socket } = request;
    // The parser goes on to the end of what it has read.
    if (socket.destroyed) return;
    const waiting = connections.get(socket);
    if (waiting === undefined) {
      connections.set(socket, []);
      proceed(socket, { request, response });
    } else if (waiting.length < maxWaiting) {
      waiting.push({ request, response });
    } else {
      connections.delete(socket);
      socket.destroy();
    }
  });
}
