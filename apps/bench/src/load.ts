import autocannon from 'autocannon';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import type { BenchRequest, Effect } from './requests.ts';

export interface Source {
  /** The gateway. */
  url: string;
  /** The next request. */
  next: () => BenchRequest;
  /** Takes back a request that was refused: it comes next. */
  takeBack: (request: BenchRequest) => void;
}

export interface LoadResult {
  /** Answers within the measured seconds. */
  perSecond: number;
  /** All answers, with those to the requests that were in progress at the end. */
  answers: number;
  /** Requests that were not done, because they waited too long for their turn (interface 8). */
  refused: number;
  /** What all answers together have changed. */
  effect: Effect;
  latencies: RecordableHistogram;
}

/** Of the most requests per second, in an even load. */
export const evenShare = 0.4;

const answerTimeoutSeconds = 30;
const openLoopConnections = 256;

/**
 * As many requests as possible: each connection sends the next one when the previous one is answered. At the end the
 * requests in progress are answered, too, so that what was answered is exactly what was done. Rejects at the first
 * wrong answer.
 */
export async function closedLoop(
  { url, next, takeBack }: Source,
  connections: number,
  seconds: number,
): Promise<LoadResult> {
  const tally = createTally();
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1_000;
  let fault: unknown;
  const options: autocannon.Options = {
    url,
    connections,
    // The clients end by themselves; this is the bound for answers that do not come.
    duration: seconds + answerTimeoutSeconds,
    timeout: answerTimeoutSeconds,
    setupClient: (client) => {
      // A client whose limit is reached ends before its next request; autocannon would cut off the last one.
      const limited = client as typeof client & { reqsMade: number; responseMax: number };
      client.on('response', () => {
        if (performance.now() >= endMs) limited.responseMax = limited.reqsMade;
      });
    },
    requests: [
      {
        setupRequest: (template, context) => {
          const request = next();
          Object.assign(context, { request, sentMs: performance.now() });
          const { method, path, headers, body } = request;
          return { ...template, method, path, headers, body };
        },
        onResponse: (status, body, context) => {
          const { request, sentMs } = context as { request: BenchRequest; sentMs: number };
          try {
            if (request.check(status, body)) return tally.add(request, sentMs, endMs);
            takeBack(request);
            tally.refuse();
          } catch (error) {
            fail(error);
          }
        },
      },
    ],
  };
  const fail = (reason: unknown): void => {
    fault ??= reason;
    loop.stop();
  };
  const ended = Promise.withResolvers<void>();
  const loop = autocannon(options, (error) => (error ? ended.reject(error as Error) : ended.resolve()));
  loop.on('reqError', fail);
  await ended.promise;
  if (fault !== undefined) throw fault as Error;
  return tally.result(seconds);
}

/**
 * Requests on an even schedule, whether previous ones have been answered or not. A latency counts from the scheduled
 * time, so waiting for a connection counts, too; up to a millisecond of it is the timer's. Rejects at the first wrong
 * answer.
 */
export async function openLoop(
  { url, next, takeBack }: Source,
  perSecond: number,
  seconds: number,
): Promise<LoadResult> {
  const pool = new Pool(url, {
    connections: openLoopConnections,
    headersTimeout: answerTimeoutSeconds * 1_000,
    bodyTimeout: answerTimeoutSeconds * 1_000,
  });
  const tally = createTally();
  const failed = new AbortController();
  const send = async (scheduledMs: number): Promise<void> => {
    try {
      const request = next();
      const { method, path, headers, body } = request;
      const response = await pool.request({ method, path, headers, body: body ?? null });
      if (request.check(response.statusCode, await response.body.text()))
        return tally.add(request, scheduledMs, Infinity);
      takeBack(request);
      tally.refuse();
    } catch (error) {
      failed.abort(error);
    }
  };
  try {
    const pending: Promise<void>[] = [];
    const startedMs = performance.now();
    for (let number = 0; number < Math.ceil(perSecond * seconds) && !failed.signal.aborted; number += 1) {
      const scheduledMs = startedMs + (number * 1_000) / perSecond;
      const waitMs = scheduledMs - performance.now();
      if (waitMs > 0) await delay(waitMs);
      pending.push(send(scheduledMs));
    }
    await Promise.all(pending);
    failed.signal.throwIfAborted();
    return tally.result(seconds);
  } finally {
    await pool.destroy();
  }
}

/** Loads of the same length, as one. */
export function mergeLoads(loads: LoadResult[]): LoadResult {
  const latencies = createHistogram();
  for (const each of loads) latencies.add(each.latencies);
  const sum = (value: (load: LoadResult) => number): number => loads.reduce((total, load) => total + value(load), 0);
  return {
    perSecond: sum(({ perSecond }) => perSecond) / loads.length,
    answers: sum(({ answers }) => answers),
    refused: sum(({ refused }) => refused),
    effect: {
      seats: sum(({ effect }) => effect.seats),
      appointments: sum(({ effect }) => effect.appointments),
      customers: sum(({ effect }) => effect.customers),
      mails: sum(({ effect }) => effect.mails),
    },
    latencies,
  };
}

/** Latencies are recorded in microseconds. */
function createTally() {
  const latencies = createHistogram();
  const effect: Effect = { seats: 0, appointments: 0, customers: 0, mails: 0 };
  let answers = 0;
  let inTime = 0;
  let refused = 0;
  return {
    add: (request: BenchRequest, sinceMs: number, endMs: number): void => {
      const nowMs = performance.now();
      latencies.record(Math.max(1, Math.round((nowMs - sinceMs) * 1_000)));
      answers += 1;
      if (nowMs <= endMs) inTime += 1;
      for (const name of Object.keys(effect) as (keyof Effect)[]) effect[name] += request.effect[name] ?? 0;
    },
    refuse: (): void => {
      refused += 1;
    },
    result: (seconds: number): LoadResult => {
      if (answers === 0) throw new Error(`no request was answered, ${refused} were refused`);
      return { perSecond: inTime / seconds, answers, refused, effect, latencies };
    },
  };
}
