import type { FastifyInstance } from 'fastify';
import type { Socket } from 'node:net';

/** How many requests of a connection may wait for earlier ones; a client that sends more ahead is disconnected. */
const maxWaiting = 100;

/**
 * Handles the requests of a connection one after another, as their responses have to be sent. A client that pipelines hundreds of requests gets no
 * more of the gateway's time than one that waits for each response, and requests whose connection is closed in the meantime are never handled.
 */
export function handleConnectionsInTurn(app: FastifyInstance): void {
  const connections = new WeakMap<Socket, (() => void)[]>();
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    const waiting = connections.get(socket);
    const proceed = (): void => {
      reply.raw.once('close', () => {
        const next = connections.get(socket)?.shift();
        if (next === undefined || socket.destroyed) connections.delete(socket);
        else next();
      });
      done();
    };
    if (waiting === undefined) {
      connections.set(socket, []);
      proceed();
    } else if (waiting.length < maxWaiting) {
      waiting.push(proceed);
    } else {
      socket.destroy();
    }
  });
}
