/** What a client knows of one attempt: accepted, rejected, or neither, because there was no answer or a 503. */
export type Outcome = 'ok' | 'failed' | 'unknown';

/** A change that a client wants, which it repeats until it knows what became of it. */
export interface Operation {
  kind: string;
  /** In milliseconds since the start of the load. */
  startedMs: number;
  /** Infinity while it is not known what became of it. */
  endedMs: number;
  /** Attempts without a known outcome. */
  unknowns: number;
  /** Undefined while it is not known. */
  outcome: Exclude<Outcome, 'unknown'> | undefined;
  /** The status and the code of the last answer. */
  answer: string;
  /** The text that the client asked to be put in the mail about it, if there is one. No other operation has it. */
  token: string;
}

export interface Journal {
  operations: Operation[];
  attempts: Record<Outcome, number>;
  /** The number of requests of all kinds, and those of them without an answer, or with 429 or 503. */
  requests: { sent: number; unserved: string[] };
  /** What should not have happened, as it was seen: answers other than 2xx, 4xx and 503, data of another CRM. */
  surprises: string[];
  begin(kind: string): Operation;
  /** Milliseconds since the start of the load. */
  now(): number;
}

export function createJournal(): Journal {
  const startedMs = performance.now();
  const operations: Operation[] = [];
  const now = (): number => performance.now() - startedMs;
  return {
    operations,
    attempts: { ok: 0, failed: 0, unknown: 0 },
    requests: { sent: 0, unserved: [] },
    surprises: [],
    now,
    begin: (kind) => {
      const token = `token-${operations.length}-`;
      const operation: Operation = {
        kind,
        startedMs: now(),
        endedMs: Number.POSITIVE_INFINITY,
        unknowns: 0,
        outcome: undefined,
        answer: '',
        token,
      };
      operations.push(operation);
      return operation;
    },
  };
}
