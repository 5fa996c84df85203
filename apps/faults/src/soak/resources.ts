import { services } from '@scheduling/stack';
import { heldBytes } from '@scheduling/testing/held-memory';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Replica } from '../system/service-group.ts';
import type { System, SystemWith } from '../system/start-system.ts';

/** What a process has open. */
export interface Handles {
  /** Another one if the process was replaced. */
  pid: number;
  descriptors: number;
  connections: number;
}

/** Memory of a process in MiB, at a time in minutes. */
export interface Sample {
  minute: number;
  memory: number;
}

const residentMs = 10_000;
/** Seldom, so that the processes mostly collect garbage when they would without it. */
const useMs = 4 * 60_000;
const handlesMs = 2_000;

/** By a name that stays the same. Restarted processes have the names of those that they replace. */
function replicasOf({ groups }: System): [string, Replica][] {
  return services.flatMap((service) =>
    groups[service].ready.map((replica): [string, Replica] => [`${service} ${replica.number + 1}`, replica]),
  );
}

function processesOf(system: SystemWith<'single'>): [string, number][] {
  return [
    ...replicasOf(system).map(([name, { child }]): [string, number] => [name, child.pid]),
    ['nats', system.nats.pid],
  ];
}

/** The memory of every process from a time on. */
export type Memory = Map<string, Sample[]>;

/** The resident memory of every process, every 10 s until the signal aborts. */
export async function followResident(system: SystemWith<'single'>, until: AbortSignal): Promise<Memory> {
  return await follow(
    residentMs,
    until,
    async () =>
      await Promise.all(processesOf(system).map(async ([name, pid]) => [name, await readMemory(pid)] as const)),
  );
}

/**
 * What the processes of the services still use after they have collected all garbage, every 4 min until the signal
 * aborts. None of them may be replaced meanwhile.
 */
export async function followUse(system: System, until: AbortSignal): Promise<Memory> {
  return await follow(
    useMs,
    until,
    async () =>
      await Promise.all(replicasOf(system).map(async ([name, replica]) => [name, await measureUse(replica)] as const)),
  );
}

/** Measures at once, and again and again until the signal aborts. */
async function follow(
  everyMs: number,
  until: AbortSignal,
  measure: () => Promise<(readonly [string, number | undefined])[]>,
): Promise<Memory> {
  const startedMs = performance.now();
  const samples: Memory = new Map();
  while (!until.aborted) {
    const minute = (performance.now() - startedMs) / 60_000;
    for (const [name, memory] of await measure()) {
      if (memory !== undefined) samples.set(name, [...(samples.get(name) ?? []), { minute, memory }]);
    }
    await delay(everyMs, undefined, { signal: until }).catch(() => undefined);
  }
  return samples;
}

/** Of the process with this id. Undefined if it has ended. */
async function readMemory(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1_024;
}

/** In MiB. Undefined if the process ends meanwhile. */
async function measureUse({ child }: Replica): Promise<number | undefined> {
  const bytes = await Promise.race([heldBytes(child), child.exited.then(() => undefined)]);
  return bytes === undefined ? undefined : bytes / 2 ** 20;
}

/**
 * The least that each process has open within a while: what is left from the load is closed soon, and some connections
 * come and go.
 */
export async function watchHandles(system: SystemWith<'single'>, ms: number): Promise<Map<string, Handles>> {
  const least = new Map<string, Handles>();
  for (const endMs = performance.now() + ms; performance.now() < endMs; await delay(handlesMs)) {
    for (const [name, pid] of processesOf(system)) {
      const seen = least.get(name);
      const { descriptors, connections } = await readHandles(pid);
      least.set(name, {
        pid,
        descriptors: Math.min(descriptors, seen?.descriptors ?? descriptors),
        connections: Math.min(connections, seen?.connections ?? connections),
      });
    }
  }
  return least;
}

async function readHandles(pid: number): Promise<Omit<Handles, 'pid'>> {
  const folder = `/proc/${pid}/fd`;
  const targets = await Promise.all(
    (await readdir(folder)).map((descriptor) => readlink(`${folder}/${descriptor}`).catch(() => '')),
  );
  return { descriptors: targets.length, connections: targets.filter((target) => target.startsWith('socket:')).length };
}

/** By how much the memory grows, in MiB per hour: the slope of the line that fits the samples best. */
export function slopeOf(samples: readonly Sample[]): number {
  const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const minute = mean(samples.map((sample) => sample.minute));
  const memory = mean(samples.map((sample) => sample.memory));
  const covariance = samples.reduce((sum, sample) => sum + (sample.minute - minute) * (sample.memory - memory), 0);
  const variance = samples.reduce((sum, sample) => sum + (sample.minute - minute) ** 2, 0);
  return (covariance / variance) * 60;
}
