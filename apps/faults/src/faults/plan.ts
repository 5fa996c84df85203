import type { Random } from '@scheduling/testing/random';
import { brokerDown, deleteStream, fullBrokerDisk, killBroker, loseStore, repeatedEvents } from './broker.ts';
import { exhaustedPool, fullDatabaseDisk, hangingDatabase, restartDatabase, terminateBackends } from './databases.ts';
import type { ServerKind } from '../system/servers.ts';
import type { SystemWith } from '../system/start-system.ts';
import type { Fault, Injection } from './fault.ts';
import { badMailServer, halfOpen, malformedCalls } from './network.ts';
import { crashPoint, hang, kill, rollingRestart, wrongClock } from './processes.ts';
import {
  allBrokersKilled,
  primaryDemoted,
  primaryKilled,
  quorumLost,
  splitBrain,
  standbyDown,
  standbyReached,
  streamLeaderKilled,
} from './replicated.ts';

const single: readonly Fault<SystemWith<'single'>>[] = [
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

const replicated: readonly Fault<SystemWith<'replicated'>>[] = [
  kill,
  crashPoint,
  rollingRestart,
  badMailServer,
  halfOpen,
  primaryKilled,
  primaryDemoted,
  standbyReached,
  standbyDown,
  splitBrain,
  streamLeaderKilled,
  quorumLost,
  allBrokersKilled,
];

/** Those that are possible with each kind of servers. */
export const faults: Record<ServerKind, readonly Fault[]> = { single, replicated };

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

/** From the beginning of a fault to that of the next one, if each comes a number of times. */
const repeatMs = 15_000;

/** Every kind so many times, one fault at a time. */
export function planRepeats(
  random: Random,
  { kinds, repeat }: { kinds: readonly Fault[]; repeat: number },
): PlannedFault[][] {
  const all = kinds.flatMap((fault) => Array.from({ length: repeat }, () => fault));
  const planned = all.map((fault, index) => ({
    fault,
    atMs: firstMs + index * repeatMs,
    ...fault.prepare(random, { longestMs: repeatMs }),
  }));
  return [planned];
}

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
