import { type Loop, startLoop } from '@scheduling/runtime';
import { LRUCache } from 'lru-cache';
import { makeDueDays, type MakingDependencies } from './make-due-days.ts';

/** What is due is found by an index. */
const everyMs = 1_000;
/** What could not be made is not tried again for so long. */
const retryMs = 60_000;

/** Makes the timeslots of opening hours that are due, in every replica. Whoever sets the clock of a sandbox wakes one. */
export function startMaking(dependencies: Omit<MakingDependencies, 'failures'>): Loop {
  const failures = new LRUCache<string, true>({ max: 10_000, ttl: retryMs });
  return startLoop({
    name: 'the making of timeslots',
    logger: dependencies.logger,
    everyMs,
    run: async (_limit, signal) => ((await makeDueDays({ ...dependencies, failures }, signal)) ? 1 : 0),
  });
}
