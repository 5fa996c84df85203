import { DomainError } from '@scheduling/errors';
import { announcedBytes, closedSignal } from '@scheduling/http';
import { FairQueue, QueueFull } from '@scheduling/runtime';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RequestError } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How much work a valid request is, compared with a booking; 1 unless given. */
    weigh?: (request: FastifyRequest) => number;
    /** Whether the response to a valid request may be sent while it is made; a short one is sent as a whole. */
    isStreamed?: (request: FastifyRequest) => boolean;
  }
}

/** The most that one CRM can have in progress, so that heavy requests of a CRM are handled one at a time. */
export const fullShare = 64;
const waiting = { maxWaiting: 500, maxWaitMs: 1_500 };
/** The same while others are served, except for a single request that is heavier. */
const shareInCompany = 8;
const turnLimits = { capacity: 2 * fullShare, shareInCompany, ...waiting };

const mebibyte = 1_048_576;
/**
 * What may be in memory: bodies that have arrived or are arriving, and responses that are not sent. The heap of the
 * process is a multiple of it.
 */
const bodyLimits = { capacity: 32 * mebibyte, share: 4 * mebibyte, rests: false, ...waiting, maxWaitMs: 4_000 };
const responseLimits = { capacity: 64 * mebibyte, share: 16 * mebibyte, rests: false, ...waiting };
/** Smaller bodies and responses are not counted: the number of requests is limited, too. */
const smallBytes = 16_384;
/** Every list in a request is limited, too. */
export const longestBodyBytes = mebibyte;
/**
 * What a response holds that is sent while it is made: a part that has arrived, and text that the client has not read.
 */
const streamBytes = 2 * mebibyte;
/** A body weighs one more for each of these. */
const bytesPerWeight = 8_192;
/** So does a request for so many things. */
const countPerWeight = 4;

/** Decides when a request of a CRM is handled, so that no CRM takes time or memory from the others. */
export interface Admission {
  /**
   * Waits until the CRM may have this request handled. Called again with a greater weight, it waits again. The turn ends
   * with the response at the latest, also where no hook of {@link guard} ends it.
   */
  admit(request: FastifyRequest, weight: number): Promise<void>;
  /**
   * Waits for a turn for a part of a response that is sent while it is made; between its parts the request has none.
   */
  takeTurn(request: FastifyRequest, weight: number, part: { first: boolean }): Promise<Disposable>;
  /**
   * Admits the requests to the routes of this scope, and holds memory for their bodies and responses. A body is not
   * read before there is memory for it.
   */
  guard(scope: FastifyInstance): void;
}

interface Admitted {
  weight: number;
  turn: Disposable;
}

export function createAdmission(): Admission {
  const turns = new FairQueue(turnLimits);
  const bodies = new FairQueue(bodyLimits);
  const responses = new FairQueue(responseLimits);
  const admitted = new WeakMap<FastifyRequest, Admitted>();

  async function enter(
    queue: FairQueue,
    request: FastifyRequest,
    weight: number,
    patient = false,
  ): Promise<Disposable> {
    try {
      return await queue.enter(crmOf(request), weight, { signal: closedSignal(request), patient });
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      throw error.behindItself ? tooBusy() : new DomainError('service.unavailable', { cause: error });
    }
  }

  async function admit(request: FastifyRequest, weight: number): Promise<void> {
    const previous = admitted.get(request);
    if (previous !== undefined && previous.weight >= Math.min(weight, fullShare)) return;
    leave(request);
    admitted.set(request, { weight, turn: releaseAtEnd(request, await enter(turns, request, weight)) });
  }

  /** The work on a request has ended, or pauses. */
  function leave(request: FastifyRequest): void {
    admitted.get(request)?.turn[Symbol.dispose]();
    admitted.delete(request);
  }

  /**
   * Other requests have their turn between the steps of a heavy one: its body is parsed, checked, converted, and its
   * response written.
   */
  async function pause(request: FastifyRequest): Promise<void> {
    if ((admitted.get(request)?.weight ?? 1) > 1) await nextTurn();
  }

  function takeTurn(request: FastifyRequest, weight: number, { first }: { first: boolean }): Promise<Disposable> {
    leave(request);
    return enter(turns, request, weight, !first);
  }

  async function hold(queue: FairQueue, request: FastifyRequest, bytes: number): Promise<void> {
    releaseAtEnd(request, await enter(queue, request, bytes));
  }

  function guard(scope: FastifyInstance): void {
    scope.addHook('onRequest', async (request) => {
      const bytes = Math.min(announcedBytes(request), longestBodyBytes);
      if (bytes > smallBytes) await hold(bodies, request, bytes);
    });
    scope.addHook('preValidation', async (request) => {
      await admit(request, 1);
      await pause(request);
    });
    scope.addHook('preHandler', async (request) => {
      if (isStreamed(request)) {
        // Without a turn: whoever holds the memory needs turns to finish.
        leave(request);
        await hold(responses, request, streamBytes);
      }
      await admit(request, request.routeOptions.config.weigh?.(request) ?? 1);
      await pause(request);
    });
    scope.addHook('preSerialization', async (request, _reply, payload) => {
      await pause(request);
      return payload;
    });
    scope.addHook('onSend', async (request, _reply, payload) => {
      leave(request);
      const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0;
      if (bytes > smallBytes && !isStreamed(request))
        releaseAtEnd(request, responses.enterAtOnce(crmOf(request), bytes));
      return payload;
    });
  }

  return { admit, takeTurn, guard };
}

/** The weight of parsing and checking a body. */
export function weightOfBody(body: Buffer): number {
  return 1 + Math.floor(body.length / bytesPerWeight);
}

/** The weight of a request for so many things, such as participations. */
export function weightOfMany(count: number): number {
  return 1 + Math.ceil(count / countPerWeight);
}

/** Whether memory for the response is held before it is made. */
function isStreamed(request: FastifyRequest): boolean {
  return request.routeOptions.config.isStreamed?.(request) ?? false;
}

function crmOf({ params }: FastifyRequest): string {
  return (params as { crmId: string }).crmId;
}

function releaseAtEnd(request: FastifyRequest, held: Disposable): Disposable {
  const closed = closedSignal(request);
  if (closed.aborted) held[Symbol.dispose]();
  else closed.addEventListener('abort', () => held[Symbol.dispose](), { once: true });
  return held;
}

function tooBusy(): RequestError {
  return new RequestError('rate.concurrent', { headers: { 'retry-after': '1' } });
}
