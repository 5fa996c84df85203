import type { Random } from '@scheduling/testing/random';
import { brokerDown, deleteStream, fullBrokerDisk, killBroker, loseStore, repeatedEvents } from './broker.ts';
import { exhaustedPool, fullDatabaseDisk, hangingDatabase, restartDatabase, terminateBackends } from './databases.ts';
import type { Fault, Injection } from './fault.ts';
import { badMailServer, halfOpen, malformedCalls } from './network.ts';
import { crashPoint, hang, kill, rollingRestart, wrongClock } from './processes.ts';

export const faults: readonly Fault[] = [
  kill,
  crashPoint,
  rollingRestart,
  restartDatabase,
  terminateBackends,
  hangingDatabase,
  exhaustedPool,
  fullDatabaseDisk,
  fullBrokerDisk,
  killBroker,
  brokerDown,
  loseStore,
  deleteStream,
  repeatedEvents,
  badMailServer,
  hang,
  wrongClock,
  halfOpen,
  malformedCalls,
];

export interface PlannedFault extends Injection {
  fault: Fault;
  /** When it begins, in milliseconds after the start of its round, unless the one before it in its lane still lasts. */
  atMs: number;
}

/** The first ones come when the load is under way. */
const firstMs = 2_000;
const gapMs = { shortest: 500, longest: 3_000 };
/** So many faults happen at the same time. */
const laneCount = 2;

/**
 * What happens in a round: always the same for a seed. The faults of a lane follow each other, those of two lanes
 * overlap. Every kind comes once before one comes again.
 */
export function planFaults(
  random: Random,
  { kinds, runMs }: { kinds: readonly Fault[]; runMs: number },
): PlannedFault[][] {
  const limits = { longestMs: Math.max(3_000, Math.round(runMs / 6)) };
  const lanes = Array.from({ length: laneCount }, () => ({ atMs: firstMs, planned: [] as PlannedFault[] }));
  let waiting: Fault[] = [];
  for (;;) {
    const lane = lanes.reduce((first, other) => (other.atMs < first.atMs ? other : first));
    if (waiting.length === 0) waiting = random.shuffled(kinds);
    const fault = waiting.shift()!;
    const injection = fault.prepare(random, limits);
    if (lane.atMs + injection.lastsMs > runMs) return lanes.map(({ planned }) => planned);
    lane.planned.push({ fault, atMs: lane.atMs, ...injection });
    lane.atMs += injection.lastsMs + random.integer(gapMs.shortest, gapMs.longest);
  }
}
