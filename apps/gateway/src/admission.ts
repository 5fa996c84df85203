import { DomainError } from '@scheduling/errors';
import { FairQueue, QueueFull } from '@scheduling/runtime';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { createByteBudget } from './byte-budget.ts';
import { RequestError } from './problem.ts';
import { announcedBytes, closedSignal } from './request-hooks.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How much work a valid request is, compared with a booking; 1 unless given. */
    weigh?: (request: FastifyRequest) => number;
  }
}

/** The most that one CRM can have in progress, so that heavy requests of a CRM are handled one at a time. */
export const fullShare = 8;
const capacity = 2 * fullShare;
const queueLimits = { capacity, maxWaiting: 500, maxWaitMs: 1_500 };

/** What bodies and unsent responses may hold. The heap of the process is a multiple of it. */
const byteLimits = { total: 64 * 1_048_576, perOwner: 16 * 1_048_576 };
/** Smaller bodies and responses are not counted: the number of requests is limited, too. */
const smallBytes = 16_384;
const longestBodyBytes = 1_048_576;
/** A body weighs one more for each of these. */
const bytesPerWeight = 65_536;
/** So does a request for so many things. */
const countPerWeight = 32;

/** Decides when a request of a CRM is handled, so that no CRM takes time or memory from the others. */
export interface Admission {
  /** Waits until the CRM may have this request handled. Called again with a greater weight, it waits again. */
  admit(request: FastifyRequest, weight: number): Promise<void>;
  /** Waits for a turn for a part of a response that is sent while it is made; between its parts the request has none. */
  takeTurn(request: FastifyRequest, weight: number, part: { first: boolean }): Promise<Disposable>;
  /** Holds memory for a body, or for a response that is sent while it is made, until the response has been sent. Throws if the CRM has too much of it. */
  holdBytes(request: FastifyRequest, bytes: number): void;
  /** Admits the requests to the routes of this scope, and holds memory for their bodies and responses. */
  guard(scope: FastifyInstance): void;
}

interface Admitted {
  weight: number;
  turn: Disposable;
}

export function createAdmission(): Admission {
  const queue = new FairQueue(queueLimits);
  const budget = createByteBudget(byteLimits);
  const admitted = new WeakMap<FastifyRequest, Admitted>();

  async function enter(request: FastifyRequest, weight: number, patient = false): Promise<Disposable> {
    admitted.get(request)?.turn[Symbol.dispose]();
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
    admitted.set(request, { weight, turn: await enter(request, weight) });
  }

  function holdBytes(request: FastifyRequest, bytes: number): void {
    const held = budget.tryHold(crmOf(request), bytes);
    if (held === undefined) throw tooBusy();
    releaseAtEnd(request, held);
  }

  function guard(scope: FastifyInstance): void {
    scope.addHook('onRequest', async (request) => {
      const bytes = Math.min(announcedBytes(request), longestBodyBytes);
      if (bytes > smallBytes) holdBytes(request, bytes);
    });
    scope.addHook('preValidation', (request) => admit(request, 1));
    scope.addHook('preHandler', (request) => admit(request, request.routeOptions.config.weigh?.(request) ?? 1));
    scope.addHook('onSend', async (request, _reply, payload) => {
      admitted.get(request)?.turn[Symbol.dispose]();
      const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0;
      if (bytes > smallBytes) releaseAtEnd(request, budget.hold(crmOf(request), bytes));
      return payload;
    });
  }

  return { admit, holdBytes, takeTurn: (request, weight, { first }) => enter(request, weight, !first), guard };
}

/** The weight of parsing and checking a body. */
export function weightOfBody(body: string): number {
  return 1 + Math.floor(body.length / bytesPerWeight);
}

/** The weight of a request for so many things, such as participations. */
export function weightOfMany(count: number): number {
  return 1 + Math.ceil(count / countPerWeight);
}

function crmOf({ params }: FastifyRequest): string {
  return (params as { crmId: string }).crmId;
}

function releaseAtEnd(request: FastifyRequest, held: Disposable): void {
  const closed = closedSignal(request);
  if (closed.aborted) held[Symbol.dispose]();
  else closed.addEventListener('abort', () => held[Symbol.dispose](), { once: true });
}

function tooBusy(): RequestError {
  return new RequestError('rate.concurrent', { headers: { 'retry-after': '1' } });
}
