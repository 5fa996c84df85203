import { services } from '@scheduling/stack';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../system/start-system.ts';

/** What a process has open. */
export interface Handles {
  /** Another one if the process was replaced. */
  pid: number;
  descriptors: number;
  connections: number;
}

/** The memory of a process in MiB, at a time in minutes. */
export interface Sample {
  minute: number;
  memory: number;
}

const sampleMs = 10_000;
const handlesMs = 2_000;

/** By a name that stays the same. Restarted processes have the names of those that they replace. */
export function processesOf({ groups, nats }: System): Map<string, number> {
  const replicas = services.flatMap((service) => groups[service].ready.map(({ child, number }) => [`${service} ${number + 1}`, child.pid] as const));
  return new Map([...replicas, ['nats', nats.pid]]);
}

/** The resident memory of every process, every 10 s until the signal aborts. */
export async function followMemory(system: System, until: AbortSignal): Promise<Map<string, Sample[]>> {
  const startedMs = performance.now();
  const samples = new Map<string, Sample[]>();
  while (!until.aborted) {
    for (const [name, pid] of processesOf(system)) {
      const memory = await readMemory(pid);
      if (memory !== undefined) samples.set(name, [...(samples.get(name) ?? []), { minute: (performance.now() - startedMs) / 60_000, memory }]);
    }
    await delay(sampleMs, undefined, { signal: until }).catch(() => undefined);
  }
  return samples;
}

/** Of the process with this id. Undefined if it has ended. */
async function readMemory(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1_024;
}

/** The least that each process has open within a while: what is left from the load is closed soon, and some connections come and go. */
export async function watchHandles(system: System, ms: number): Promise<Map<string, Handles>> {
  const least = new Map<string, Handles>();
  for (const endMs = performance.now() + ms; performance.now() < endMs; await delay(handlesMs)) {
    for (const [name, pid] of processesOf(system)) {
      const seen = least.get(name);
      const { descriptors, connections } = await readHandles(pid);
      least.set(name, { pid, descriptors: Math.min(descriptors, seen?.descriptors ?? descriptors), connections: Math.min(connections, seen?.connections ?? connections) });
    }
  }
  return least;
}

async function readHandles(pid: number): Promise<Omit<Handles, 'pid'>> {
  const folder = `/proc/${pid}/fd`;
  const targets = await Promise.all((await readdir(folder)).map((descriptor) => readlink(`${folder}/${descriptor}`).catch(() => '')));
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
