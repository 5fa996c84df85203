import type { LoadResult } from './load.ts';
import { type PerProcess, processNames } from './processes.ts';

/** In milliseconds, at a rate. */
export interface Latency {
  perSecond: number;
  p50: number;
  p99: number;
}

/** The result of a case on one stack. */
export interface Row {
  case: string;
  version: string;
  perSecond?: number;
  /** As many requests as possible. */
  atMaximum?: Latency;
  /** An even load of 40 % of that; of the lower one, if two stacks are compared. */
  atPart?: Latency;
  firstByteMs?: number;
  totalMs?: number;
  limit?: { value: number; unit: '/s' | 'ms' };
  /** Of the rate, or of the total time, to the limit. */
  ratio?: number;
  /** Per request, or the share of a core. */
  cpu: PerProcess;
  cpuUnit: 'ms' | '%';
  /** The peak, in MiB, and by how much it exceeds that of the stack before all cases. */
  memory: PerProcess;
  growth: PerProcess;
  /** What the background work of a service changes: p99, and the processor time of Postgres, with it to without it. */
  background?: { p99: number; postgres: number };
  note?: string | undefined;
}

/** The latencies of a load. */
export function latencyOf({ perSecond, latencies }: LoadResult): Latency {
  return { perSecond, p50: latencies.percentile(50) / 1_000, p99: latencies.percentile(99) / 1_000 };
}

export function remarks(note: string | undefined, ...loads: LoadResult[]): string {
  const refused = loads.reduce((sum, load) => sum + load.refused, 0);
  return [note, refused > 0 && `${refused} requests refused`].filter(Boolean).join('; ');
}

const columns = [
  'case',
  'requests/s',
  'p50 / p99',
  'p50 / p99 at 40 %',
  'first byte / total',
  'limit',
  'ratio to it',
  ...processNames,
  'remarks',
];

/** A table of all rows; the row of a compared version follows that of this one, with the ratios between them. */
export function toMarkdown(rows: Row[]): string {
  const lines = rows.map((row, index) => {
    const first = rows[index - 1]?.case === row.case ? rows[index - 1] : undefined;
    return `| ${cells(row, first).join(' | ')} |`;
  });
  return [`| ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length)}`, ...lines, '', legend].join('\n');
}

const legend =
  'Times are in milliseconds. The limit is the same SQL on the same Postgres without the services: 8 clients of pgbench, or psql for lists. ' +
  'Of each process: processor time per request (at rest: share of a core), then the peak of its memory in MiB and by how much that exceeds its memory before all cases.';

function cells(row: Row, first: Row | undefined): string[] {
  return [
    first ? `… ${row.version}` : row.case,
    rounded(row.perSecond),
    latency(row.atMaximum),
    latency(row.atPart),
    row.totalMs === undefined ? '–' : `${row.firstByteMs!.toFixed(1)} / ${row.totalMs.toFixed(1)}`,
    row.limit ? `${rounded(row.limit.value)} ${row.limit.unit}` : '–',
    row.ratio === undefined ? '–' : row.ratio.toFixed(2),
    ...processNames.map((name) => processCell(row, name)),
    [row.note, first && comparison(row, first)].filter(Boolean).join('; ') || '–',
  ];
}

function processCell({ cpu, cpuUnit, memory, growth }: Row, name: (typeof processNames)[number]): string {
  if (cpu[name] === undefined) return '–';
  const used = cpu[name].toFixed(2) + (cpuUnit === '%' ? ' %' : '');
  return `${used}; ${rounded(memory[name])} (${growth[name]! < 0 ? '' : '+'}${rounded(growth[name])})`;
}

function comparison(row: Row, first: Row): string {
  const ratio = (name: string, value: number | undefined, of: number | undefined): string[] =>
    value === undefined || !of ? [] : [`${name} ${(value / of).toFixed(2)}`];
  const cpuOf = ({ cpu }: Row): number =>
    processNames.reduce((sum, name) => sum + (name === 'load' ? 0 : (cpu[name] ?? 0)), 0);
  const parts = [
    ...ratio('rate', row.perSecond, first.perSecond),
    ...ratio('p50', row.atPart?.p50, first.atPart?.p50),
    ...ratio('p99', row.atPart?.p99, first.atPart?.p99),
    ...ratio('total', row.totalMs, first.totalMs),
    ...ratio('processor time', cpuOf(row), cpuOf(first)),
  ];
  return `to ${first.version}: ${parts.join(', ')}`;
}

function latency(value: Latency | undefined): string {
  return value ? `${value.p50.toFixed(1)} / ${value.p99.toFixed(1)}` : '–';
}

function rounded(value: number | undefined): string {
  if (value === undefined) return '–';
  return value.toFixed(Math.abs(value) < 100 ? 1 : 0);
}
