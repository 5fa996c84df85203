import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { setTimeout as delay } from 'node:timers/promises';
import { TooManyStrangers } from './errors.ts';
import { closedSignal } from './request-hooks.ts';

/** Slows down addresses from which many unknown keys or tokens come. */
export interface Strangers {
  /**
   * Waits, if the address has failed too often. Rejects with TooManyStrangers if too many of its requests wait, or
   * with the reason of the signal.
   */
  delay(address: string, signal: AbortSignal): Promise<void>;
  /** The address has sent no key or token, or an unknown one. */
  noteFailure(address: string): void;
}

interface Failures {
  count: number;
  endsAtMs: number;
  waiting: number;
}

const windowMs = 60_000;
const maxAddresses = 10_000;
/** Each waiting request of an address prolongs the wait of the next, so that it gets at most 50 responses a second. */
const waitMsPerRequest = 20;
const shortestWaitMs = 1_000;
const longestWaitMs = 10_000;
const rejectionMs = 250;

/**
 * A stranger's request costs this process about as much as any other, and another service a query. Waiting costs
 * nothing, so past the limit strangers wait.
 *
 * @param freeFailures failures of an address in a minute that have no consequences
 */
export function createStrangers(now: () => number, freeFailures: number): Strangers {
  const addresses = new LRUCache<string, Failures>({ max: maxAddresses });

  function failuresOf(address: string): Failures {
    const known = addresses.get(address);
    if (known !== undefined && (now() < known.endsAtMs || known.waiting > 0)) return known;
    const failures = { count: 0, endsAtMs: now() + windowMs, waiting: 0 };
    addresses.set(address, failures);
    return failures;
  }

  return {
    delay: async (address, signal) => {
      const failures = failuresOf(address);
      if (failures.count < freeFailures) return;
      const waitMs = Math.max(shortestWaitMs, failures.waiting * waitMsPerRequest);
      if (waitMs > longestWaitMs) throw new TooManyStrangers(windowMs / 1_000);
      failures.waiting += 1;
      try {
        await delay(waitMs, undefined, { signal });
      } finally {
        failures.waiting -= 1;
      }
    },
    noteFailure: (address) => {
      failuresOf(address).count += 1;
    },
  };
}

/**
 * Waits for a moment before a request over a limit is rejected: a client that repeats it at once would take the time of
 * others. Ends with its connection.
 */
export async function delayRejection(request: FastifyRequest): Promise<void> {
  await delay(rejectionMs, undefined, { signal: closedSignal(request) });
}

/** Waits until a request without a known key or token may be handled; ends with its connection. */
export function slowDown(strangers: Strangers, request: FastifyRequest): Promise<void> {
  return strangers.delay(request.ip, closedSignal(request));
}
