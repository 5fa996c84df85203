import { slopeOf, type Handles, type Sample } from './resources.ts';
import type { SoakReport } from './run-soak.ts';

/** From when on the memory should not grow any more: in minutes, but at most this part of the time. */
const warmMinutes = 10;
const warmPart = 1 / 3;
const maxShown = 20;

/** The report as lines of text. */
export function describeSoak(report: SoakReport): string[] {
  const { minutes, capacity, requests, restarts, memory, handles } = report;
  const warm = Math.min(warmMinutes, minutes * warmPart);
  const names = [...handles.before.keys()];
  return [
    `${requests.sent} requests in ${minutes} min, ${(requests.sent / minutes / 60).toFixed(0)} of ${capacity.toFixed(0)} per second; ${requests.unserved.length} not served; ${restarts} processes replaced`,
    '',
    `| Process | Memory, MiB | after ${warm.toFixed(0)} min, MiB/h | Descriptors | Connections |`,
    '|---|---|---|---|---|',
    ...names.map((name) => `| ${name} | ${describeMemory(memory.get(name) ?? [], warm, restarts)} | ${describeHandles(handles, name, 'descriptors')} | ${describeHandles(handles, name, 'connections')} |`),
    '',
    ...findFaults(report).slice(0, maxShown),
  ];
}

/** Everything that should not be. */
export function findFaults({ requests, handles: { before, after }, faults }: SoakReport): string[] {
  const grown = [...before].filter(([name, { pid, descriptors, connections }]) => {
    const now = after.get(name);
    if (now === undefined) return true;
    // How much a process has open depends on what it has done since its start.
    return now.pid === pid && (now.descriptors > descriptors || now.connections > connections);
  });
  return [
    ...requests.unserved,
    ...grown.map(([name]) => `${name} has more open than before`),
    ...faults,
  ];
}

function describeMemory(samples: readonly Sample[], warm: number, restarts: number): string {
  const later = samples.filter(({ minute }) => minute >= warm);
  const first = later[0]?.memory.toFixed(0) ?? '';
  const last = later.at(-1)?.memory.toFixed(0) ?? '';
  // A replaced process begins anew.
  return `${first} to ${last} | ${restarts > 0 || later.length < 2 ? '' : slopeOf(later).toFixed(1)}`;
}

function describeHandles({ before, after }: SoakReport['handles'], name: string, kind: Exclude<keyof Handles, 'pid'>): string {
  return `${before.get(name)![kind]} to ${after.get(name)?.[kind] ?? 'nothing'}`;
}
