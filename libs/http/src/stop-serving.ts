import type { FastifyInstance } from 'fastify';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Work in progress when the stop begins may take this long, in milliseconds; then connections are closed. */
const drainTimeoutMs = 7_000;
/** How long clients may go on using their connections when the stop begins, in milliseconds. */
const leavingMs = 1_000;
const leavingPollMs = 20;

/**
 * Waits until the connections are closed, as every response now asks for. On one that the server closes, the next
 * request may be on its way.
 */
export async function untilClientsHaveLeft({ server }: FastifyInstance): Promise<void> {
  const count = promisify(server.getConnections.bind(server));
  for (const endMs = performance.now() + leavingMs; performance.now() < endMs && (await count()) > 0;)
    await delay(leavingPollMs);
}

/** Finishes the requests in progress. */
export async function stopServing(http: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => http.server.closeAllConnections(), drainTimeoutMs);
  try {
    await http.close();
  } finally {
    clearTimeout(timer);
  }
}
