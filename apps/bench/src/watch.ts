import { combine, type PerProcess, readCpu, watchMemory } from './processes.ts';
import type { Target } from './target.ts';

/** What the processes of a stack used while they were watched. */
export interface Usage {
  /** In milliseconds. */
  cpu: PerProcess;
  /** The peak, in MiB. */
  memory: PerProcess;
  /** By how much that exceeds the memory before all cases. */
  growth: PerProcess;
}

/** Watches the processes until the returned function is called. */
export async function startWatch({ info: { pids }, idleMemory }: Target): Promise<() => Promise<Usage>> {
  const stopMemory = watchMemory(pids);
  const before = await readCpu(pids);
  return async () => {
    const cpu = combine(await readCpu(pids), before, (now, then) => now - then);
    const memory = await stopMemory();
    return { cpu, memory, growth: combine(memory, idleMemory, (peak, idle) => peak - idle) };
  };
}

/** Of several periods. */
export function mergeUsages([first, ...others]: Usage[]): Usage {
  return others.reduce(
    (all, each) => ({
      cpu: combine(all.cpu, each.cpu, (a, b) => a + b),
      memory: combine(all.memory, each.memory, Math.max),
      growth: combine(all.growth, each.growth, Math.max),
    }),
    first!,
  );
}
