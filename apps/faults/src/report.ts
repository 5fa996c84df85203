import type { InjectedFault } from './checks/evidence.ts';
import type { Fault } from './faults/fault.ts';
import type { Journal, Operation } from './load/journal.ts';
import { isByPerson } from './load/persons.ts';
import type { FaultReport } from './run-faults.ts';

/** What each invariant promises, in the words of docs/reliability.md. */
export const invariants = {
  I1: 'no appointment overbooked',
  I2: 'accepted changes visible, rejected ones absent, repeated ones applied once',
  I3: 'every required mail, and no other',
  I4: 'one copy of each mail, unless its arrival was unknown',
  I5: 'no data of an erased person',
  I6: 'no event, mail, erasure or dead letter left over',
  I7: 'no reservation left over',
  I8: 'only permitted transitions',
  I9: 'no data of another CRM',
  I10: 'no overlapping bookings on a resource',
  I11: 'listed if and only if bookable',
  I12: 'feed complete and in order',
  I13: 'bookings of the person whom the reference named',
  I14: 'no mail to an address replaced before',
  I15: 'no mail after one about a later change',
  I16: 'links of persons show the present, or nothing',
  I17: 'opening hours and their timeslots as set last, bookings in open windows only',
  I18: 'no booking in a block, and everybody named who had booked before',
  I19: 'buffers between bookings',
  I20: 'bookings accepted again within 5 s, and none of them lost',
  I21: 'a provider is deleted or not, in all services, and nothing is left of its persons',
} as const;

const maxShown = 20;

/**
 * What several runs have shown together, or one, as lines of text.
 *
 * @param extent how long each was, in words
 */
export function describeReports(reports: readonly FaultReport[], extent: string): string[] {
  return [
    ...describeSeeds(reports, extent),
    '',
    '| Fault | | Injected |',
    '|---|---|---|',
    ...describeFaults(reports.flatMap(({ injected }) => injected)),
    '',
    ...describeRecoveries(reports.flatMap(({ injected }) => injected)),
    '| Invariant | | Violations |',
    '|---|---|---|',
    ...describeInvariants(reports),
  ];
}

function describeSeeds(reports: readonly FaultReport[], extent: string): string[] {
  const rows = reports.map(countsOf);
  const sums = Object.values(counts).map((_, column) => rows.reduce((sum, row) => sum + row[column]!, 0));
  const names = Object.keys(counts);
  return [
    `| Seed, ${extent} | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---|').join('')}`,
    ...reports.map(({ seed }, index) => `| ${seed} | ${rows[index]!.join(' | ')} |`),
    ...(reports.length > 1 ? [`| **Sum** | ${sums.map((sum) => `**${sum}**`).join(' | ')} |`] : []),
  ];
}

/** What a run is described by, in one row. */
const counts: Record<string, (report: FaultReport) => number> = {
  Faults: ({ injected }) => injected.filter(({ hasHappened }) => hasHappened).length,
  Changes: ({ journal }) => journal.operations.length,
  'by persons': ({ journal }) => journal.operations.filter(isByPerson).length,
  Attempts: ({ journal: { attempts } }) => attempts.ok + attempts.failed + attempts.unknown,
  Accepted: ({ journal }) => journal.attempts.ok,
  Rejected: ({ journal }) => journal.attempts.failed,
  Unknown: ({ journal }) => journal.attempts.unknown,
  'Changes with unknown attempts': ({ journal }) => uncertain(journal).length,
  'of them resolved': ({ journal }) => uncertain(journal).filter(({ outcome }) => outcome !== undefined).length,
  Mails: ({ mails }) => mails,
  Events: ({ events }) => events,
  Violations: ({ violations }) => violations.length,
};

function countsOf(report: FaultReport): number[] {
  return Object.values(counts).map((count) => count(report));
}

function uncertain({ operations }: Journal): Operation[] {
  return operations.filter(({ unknowns }) => unknowns > 0);
}

function describeFaults(injected: readonly InjectedFault[]): string[] {
  return byKind(injected).map(
    ([{ id, name }, all]) =>
      `| ${id} | ${name} | ${all.filter(({ hasHappened }) => hasHappened).length} of ${all.length} |`,
  );
}

/** Nothing if there was no fault after which bookings have to be accepted again. */
function describeRecoveries(injected: readonly InjectedFault[]): string[] {
  const recovered = byKind(injected.filter(({ recovery }) => recovery !== undefined));
  if (recovered.length === 0) return [];
  const longest = (times: number[]): string => `${(Math.max(...times) / 1_000).toFixed(1)} s`;
  return [
    '| Fault | Times | Longest until a booking was accepted | Longest until the last one was not |',
    '|---|---|---|---|',
    ...recovered.map(([{ id }, all]) => {
      const recoveries = all.map(({ recovery }) => recovery!);
      const first = longest(recoveries.map(({ tookMs }) => tookMs));
      return `| ${id} | ${all.length} | ${first} | ${longest(recoveries.map(({ refusedMs }) => refusedMs))} |`;
    }),
    '',
  ];
}

function byKind(injected: readonly InjectedFault[]): [Fault, InjectedFault[]][] {
  return [...Map.groupBy(injected, ({ fault }) => fault)].toSorted(
    ([a], [b]) => Number(a.id.slice(1)) - Number(b.id.slice(1)),
  );
}

/** Those that were checked. */
function describeInvariants(reports: readonly FaultReport[]): string[] {
  const violations = reports.flatMap((report) => report.violations);
  return Object.entries(invariants)
    .filter(([id]) => id !== 'I20' || reports.some(({ servers }) => servers === 'replicated'))
    .map(([id, text]) => `| ${id} | ${text} | ${violations.filter(({ invariant }) => invariant === id).length} |`);
}

/** What is wrong after one run, as lines of text. */
export function describeViolations({ seed, violations, folder }: FaultReport): string[] {
  if (violations.length === 0) return [];
  return [
    ...violations.slice(0, maxShown).map(({ invariant, text }) => `seed ${seed}, ${invariant}: ${text}`),
    ...(violations.length > maxShown ? [`and ${violations.length - maxShown} more`] : []),
    `The logs, and the data of Postgres and NATS: ${folder}`,
  ];
}
