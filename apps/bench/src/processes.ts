import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { StackInfo } from '@scheduling/stack';

/** The processes whose cost is measured; `load` is this one. */
export const processNames = [
  'gateway',
  'page',
  'identity',
  'calendar',
  'customer',
  'notification',
  'webhook',
  'postgres',
  'nats',
  'load',
] as const;
export type ProcessName = (typeof processNames)[number];

/** Undefined where the system has no /proc. */
export type PerProcess = Record<ProcessName, number | undefined>;

type Pids = StackInfo['pids'];

const millisecondsPerTick = 10;
const pollMs = 250;

/**
 * The processor time used so far, in milliseconds; that of Postgres includes its children, also those that have ended.
 */
export function readCpu(pids: Pids): Promise<PerProcess> {
  return perProcess(pids, async (pid, children) => {
    const own = await readStat(pid);
    if (own === undefined) return undefined;
    const ended = children.length > 0 ? ticks(own[13], own[14]) : 0;
    const running = await Promise.all([pid, ...children].map(readOwnCpu));
    return running.reduce((sum, each) => sum + each, ended);
  });
}

/**
 * Of the threads that have not ended. Ticks would be too coarse: at rest, most processes need only a few of them in a
 * measurement.
 */
async function readOwnCpu(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const counts = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0')),
  );
  const nanoseconds = counts.reduce((sum, each) => sum + Number(each.split(' ')[0]), 0);
  if (nanoseconds > 0) return nanoseconds / 1e6;
  // A system without these counts.
  const fields = await readStat(pid);
  return fields === undefined ? 0 : ticks(fields[11], fields[12]);
}

function ticks(user: string | undefined, system: string | undefined): number {
  return (Number(user) + Number(system)) * millisecondsPerTick;
}

/**
 * The resident memory in MiB; that of Postgres is the sum of what its processes have alone, and what they share once.
 */
export function readMemory(pids: Pids): Promise<PerProcess> {
  return perProcess(pids, async (pid, children) => {
    const statuses = await Promise.all(
      [pid, ...children].map((each) => readFile(`/proc/${each}/status`, 'utf8').catch(() => '')),
    );
    const kibibytes = (field: string): number[] =>
      statuses.map((status) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0));
    if (statuses[0] === '') return undefined;
    if (children.length === 0) return kibibytes('VmRSS')[0]! / 1_024;
    const alone = kibibytes('RssAnon').reduce((sum, each) => sum + each, 0);
    return (alone + Math.max(...kibibytes('RssShmem')) + Math.max(...kibibytes('RssFile'))) / 1_024;
  });
}

/** Follows the memory until the returned function is called, which returns the highest values. */
export function watchMemory(pids: Pids): () => Promise<PerProcess> {
  const ended = new AbortController();
  const watched = (async () => {
    let peak = await readMemory(pids);
    while (!ended.signal.aborted) {
      await delay(pollMs);
      peak = combine(peak, await readMemory(pids), Math.max);
    }
    return peak;
  })();
  return () => {
    ended.abort();
    return watched;
  };
}

export function combine(one: PerProcess, other: PerProcess, operation: (a: number, b: number) => number): PerProcess {
  const pairs = processNames.map((name) => [
    name,
    one[name] === undefined || other[name] === undefined ? undefined : operation(one[name], other[name]),
  ]);
  return Object.fromEntries(pairs) as PerProcess;
}

export function mapEach(values: PerProcess, change: (value: number) => number): PerProcess {
  return combine(values, values, change);
}

async function perProcess(
  pids: Pids,
  read: (pid: number, children: number[]) => Promise<number | undefined>,
): Promise<PerProcess> {
  const backends = await childrenOf(pids.postgres);
  const values = processNames.map(async (name) => {
    const pid = name === 'load' ? process.pid : pids[name];
    return [name, pid === null ? undefined : await read(pid, name === 'postgres' ? backends : [])];
  });
  return Object.fromEntries(await Promise.all(values)) as PerProcess;
}

/** Without those of other threads: Postgres has one. */
async function childrenOf(pid: number | null): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

/** The fields of /proc/<pid>/stat after the command's name. */
async function readStat(pid: number): Promise<string[] | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}
