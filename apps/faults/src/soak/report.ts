import { slopeOf, type Handles, type Sample } from './resources.ts';
import type { SoakReport } from './run-soak.ts';

const maxShown = 20;
/** In MiB per hour. With few samples, what a process happens to be doing can account for half of it. */
const maxGrowth = 30;
/** For a slope: with fewer, it would be chance. */
const minSamples = 3;

/** The report as lines of text. */
export function describeSoak(report: SoakReport): string[] {
  const { minutes, capacity, requests, restarts, warmMinutes, resident, used, handles } = report;
  const names = [...handles.before.keys()];
  return [
    `${requests.sent} requests in ${minutes} min, ${(requests.sent / minutes / 60).toFixed(0)} of ${capacity.toFixed(0)} per second; ${requests.unserved.length} failed; ${restarts} processes replaced`,
    '',
    `From minute ${warmMinutes.toFixed(0)} on, in MiB and MiB per hour; descriptors and connections at rest, before and after:`,
    '',
    '| Process | Resident | grows | In use | grows | Descriptors | Connections |',
    '|---|---|---|---|---|---|---|',
    ...names.map((name) => {
      const memory = [resident, used].map((of) => describeMemory(of.get(name), restarts)).join(' | ');
      return `| ${name} | ${memory} | ${describeHandles(handles, name, 'descriptors')} | ${describeHandles(handles, name, 'connections')} |`;
    }),
    '',
    ...findFaults(report).slice(0, maxShown),
  ];
}

/** Everything that is wrong. */
export function findFaults({ requests, used, handles: { before, after }, faults }: SoakReport): string[] {
  const grown = [...before].filter(([name, { pid, descriptors, connections }]) => {
    const now = after.get(name);
    if (now === undefined) return true;
    // How much a process has open depends on what it has done since its start.
    return now.pid === pid && (now.descriptors > descriptors || now.connections > connections);
  });
  const leaking = [...used].filter(([, samples]) => samples.length >= minSamples && slopeOf(samples) > maxGrowth);
  return [
    ...requests.unserved,
    ...leaking.map(([name]) => `${name} uses more and more memory`),
    ...grown.map(([name]) => `${name} has more descriptors or connections open than before`),
    ...faults,
  ];
}

function describeMemory(samples: readonly Sample[] | undefined, restarts: number): string {
  if (samples === undefined) return '– | –';
  const [first, last] = [samples[0], samples.at(-1)].map((sample) => sample?.memory.toFixed(1));
  // A replaced process begins anew.
  return `${first} to ${last} | ${restarts > 0 || samples.length < minSamples ? '–' : slopeOf(samples).toFixed(1)}`;
}

function describeHandles(
  { before, after }: SoakReport['handles'],
  name: string,
  kind: Exclude<keyof Handles, 'pid'>,
): string {
  return `${before.get(name)![kind]} to ${after.get(name)?.[kind] ?? 'nothing'}`;
}
