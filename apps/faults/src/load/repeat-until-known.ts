import { setTimeout as delay } from 'node:timers/promises';
import type { Journal, Operation } from './journal.ts';

/** What somebody knows after one attempt of a change. */
export interface Attempt {
  /** Undefined if it may have had an effect, or is to be repeated. */
  outcome: 'ok' | 'failed' | undefined;
  /** A rejection by which a repetition tells that an earlier attempt was accepted. */
  isGone?: boolean;
  /** The status and the code of the answer, or that there was none. */
  answer: string;
  /** How long to wait before the next one. */
  pauseMs: number;
}

/**
 * A request has no effect later than this, unless something stands still, so a rejection is final if no earlier attempt
 * is younger.
 */
export const effectMs = 3_000;

/** Repeats a change until it is known what became of it, or until the signal aborts, and notes it in the journal. */
export async function repeatUntilKnown(
  operation: Operation,
  attempt: () => Promise<Attempt>,
  { journal, ended }: { journal: Journal; ended: AbortSignal },
): Promise<void> {
  let unansweredMs = Number.NEGATIVE_INFINITY;
  while (!ended.aborted) {
    const sentMs = journal.now();
    const { outcome, isGone = false, answer, pauseMs } = await attempt();
    journal.attempts[outcome ?? 'unknown'] += 1;
    if (outcome === 'failed' && sentMs < unansweredMs + effectMs) {
      await delay(unansweredMs + effectMs - sentMs);
      continue;
    }
    operation.answer = answer;
    if (outcome !== undefined) {
      operation.outcome = outcome === 'ok' || (isGone && operation.unknowns > 0) ? 'ok' : 'failed';
      operation.endedMs = journal.now();
      return;
    }
    operation.unknowns += 1;
    unansweredMs = sentMs;
    await delay(pauseMs);
  }
}
