import { hangingDatabase } from '../faults/databases.ts';
import { halfOpen } from '../faults/network.ts';
import { hang } from '../faults/processes.ts';
import type { Operation } from '../load/journal.ts';
import type { Change } from '../load/model.ts';
import type { InjectedFault } from './evidence.ts';

const pauses = new Set([hang, hangingDatabase, halfOpen]);

/**
 * Whether an attempt without a known result may have taken effect after its repetition was answered: a process that
 * stood still reads what was sent to it meanwhile as if it had just come (see reliability.md).
 */
export function mayComeLate({ unknowns, ...operation }: Operation, injected: readonly InjectedFault[]): boolean {
  return unknowns > 0 && injected.some((fault) => pauses.has(fault.fault) && overlaps(operation, fault));
}

/**
 * Whether an attempt without a known result may have taken effect before another change, made at the same time, had its
 * repetition rejected.
 */
export function wasOvertaken(operation: Operation, changes: readonly Change[]): boolean {
  return (
    operation.outcome === 'failed' &&
    operation.unknowns > 0 &&
    changes.some((other) => other.operation !== operation && overlaps(other.operation, operation))
  );
}

interface Period {
  startedMs: number;
  endedMs: number;
}

function overlaps(one: Period, other: Period): boolean {
  return one.startedMs < other.endedMs && other.startedMs < one.endedMs;
}
