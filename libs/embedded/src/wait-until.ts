import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** What is awaited, for the error message. */
  what: string;
  timeoutMs: number;
  intervalMs?: number;
}

/**
 * Polls until the result is neither `undefined` nor `false`, and returns it. An error thrown by the check counts as
 * "not yet".
 */
export async function waitUntil<T>(
  check: () => Promise<T | undefined | false> | T | undefined | false,
  options: WaitOptions,
): Promise<T> {
  const { what, timeoutMs, intervalMs = 50 } = options;
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  do {
    try {
      const value = await check();
      if (value !== undefined && value !== false) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    await delay(intervalMs);
  } while (performance.now() < deadline);
  throw new Error(`waited ${timeoutMs} ms for ${what}`, { cause: lastError });
}

/** Whether something listens on this port of 127.0.0.1. */
export async function isReachable(port: number): Promise<boolean> {
  const socket = createConnection({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
