import type { InjectedFault } from './checks/evidence.ts';
import type { FaultReport } from './run-faults.ts';

/** What each invariant promises, in the words of docs/reliability.md. */
export const invariants = {
  I1: 'no seat too many',
  I2: 'accepted is there, rejected is not, repeated counts once',
  I3: 'every mail that is due, and no other',
  I4: 'one copy of each mail, unless it is not known to have arrived',
  I5: 'nothing of an erased person',
  I6: 'no event, mail, erasure or dead letter left over',
  I7: 'no reservation left over',
  I8: 'only permitted transitions',
  I9: 'nothing of another CRM',
  I10: 'no two bookings of the same time',
  I11: 'listed if and only if bookable',
  I12: 'the feed complete and in order',
} as const;

const maxShown = 20;

/** The report of one run, as lines of text. */
export function describeReport({ injected, journal, mails, events, violations, folder }: FaultReport): string[] {
  const { operations, attempts } = journal;
  const unclear = operations.filter(({ unknowns }) => unknowns > 0);
  const resolved = unclear.filter(({ outcome }) => outcome !== undefined);
  return [
    '| Fault | | Injected |',
    '|---|---|---|',
    ...describeFaults(injected),
    '',
    `${operations.length} changes in ${attempts.ok + attempts.failed + attempts.unknown} attempts: ${attempts.ok} accepted, ${attempts.failed} rejected, ${attempts.unknown} unknown; ` +
      `${resolved.length} of ${unclear.length} changes with unknown attempts resolved; ${mails} mails, ${events} events`,
    '',
    '| Invariant | | Violations |',
    '|---|---|---|',
    ...Object.entries(invariants).map(([id, text]) => `| ${id} | ${text} | ${violations.filter(({ invariant }) => invariant === id).length} |`),
    ...(violations.length === 0 ? [] : ['', ...violations.slice(0, maxShown).map(({ invariant, text }) => `${invariant}: ${text}`)]),
    ...(violations.length > maxShown ? [`and ${violations.length - maxShown} more`] : []),
    ...(violations.length > 0 ? ['', `The logs, and the data of Postgres and NATS: ${folder}`] : []),
  ];
}

function describeFaults(injected: readonly InjectedFault[]): string[] {
  const byKind = Map.groupBy(injected, ({ fault }) => fault);
  return [...byKind]
    .toSorted(([a], [b]) => Number(a.id.slice(1)) - Number(b.id.slice(1)))
    .map(([{ id, name }, all]) => `| ${id} | ${name} | ${all.filter(({ hasHappened }) => hasHappened).length} of ${all.length} |`);
}
