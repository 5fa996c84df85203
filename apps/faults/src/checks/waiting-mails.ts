import type { Operation } from '../load/journal.ts';

/** A mail about a participation that may have to wait. */
export interface WaitingMail {
  operation: Pick<Operation, 'startedMs' | 'endedMs'>;
  /** When it came, in milliseconds since the start of the load; -Infinity if it did not. */
  arrivedMs: number;
}

/** Of the mails about a participation that wait, the first is kept, and so many of the newest (interface 6.3). */
const newestKept = 4;

/**
 * Whether the mail about an operation may have been dropped, because an earlier one still waited when the newest that
 * are kept were all about later changes.
 *
 * @param mails all that may have had to wait
 */
export function mayBeDropped(operation: WaitingMail['operation'], mails: readonly WaitingMail[]): boolean {
  const others = mails.filter((mail) => mail.operation !== operation);
  const earlier = others.filter((mail) => mail.operation.startedMs < operation.endedMs);
  return earlier.some((first) => {
    const later = others.filter((mail) => mail !== first && mail.operation.endedMs > operation.startedMs);
    const lastMs = later.map((mail) => mail.operation.startedMs).toSorted((a, b) => a - b)[newestKept - 1];
    return lastMs !== undefined && first.arrivedMs > lastMs;
  });
}
