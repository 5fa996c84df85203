import { createRandom, type Random } from '@scheduling/testing/random';
import { setTimeout as delay } from 'node:timers/promises';
import { createAppointment, describeAppointment, endAppointment } from './appointments.ts';
import { createBlock, deleteBlock } from './blocks.ts';
import { changeAddress, changeReference } from './changed-customers.ts';
import { createCustomer, eraseCustomer, eraseOne, renameCustomer } from './customers.ts';
import { deleteHours, setHours } from './hours.ts';
import type { Journal } from './journal.ts';
import type { Tenant } from './model.ts';
import { book, changeAtOnce, moveToState, rushForSeats } from './participations.ts';
import { attendAsPerson, cancelAsPerson, moveAndCancelAtOnce, moveAsPerson, rushForTimes } from './persons.ts';
import { createSeries } from './series.ts';
import { bookSlot, createTimeslot, deleteTimeslot, moveBooking, rushForSlots } from './slots.ts';
import { createUser, deleteUser, renameUser, verifyUser } from './users.ts';
import type { Worker } from './worker.ts';

/** What a worker does, and how often in relation to the others. */
const actions: [number, (worker: Worker) => Promise<void>][] = [
  [10, createCustomer],
  [6, renameCustomer],
  [6, changeAddress],
  [6, changeReference],
  [3, eraseCustomer],
  [8, createAppointment],
  [4, describeAppointment],
  [3, endAppointment],
  [25, book],
  [2, rushForSeats],
  [18, moveToState],
  [6, changeAtOnce],
  [5, createTimeslot],
  [1, deleteTimeslot],
  [14, bookSlot],
  [5, rushForSlots],
  [6, moveBooking],
  [3, setHours],
  [1, deleteHours],
  [3, createBlock],
  [2, deleteBlock],
  [8, attendAsPerson],
  [6, cancelAsPerson],
  [10, moveAsPerson],
  [3, rushForTimes],
  [3, moveAndCancelAtOnce],
  [1, createSeries],
  [3, createUser],
  [2, renameUser],
  [3, verifyUser],
  [1, deleteUser],
];
/** Of many clients at the same moment. */
const rushes = new Set([
  rushForSeats,
  rushForSlots,
  rushForTimes,
  moveAndCancelAtOnce,
  setHours,
  createBlock,
  deleteBlock,
]);

export interface LoadOptions {
  tenants: Tenant[];
  journal: Journal;
  seed: number;
  workersPerProvider: number;
  pause: Pause;
  /** Nothing that many clients want at the same moment. */
  withoutRushes?: boolean;
}

/** How long a worker waits after an action that took so long, in milliseconds. */
export type Pause = (random: Random, tookMs: number) => number;

/**
 * Until the signal aborts. Then everybody still finds out what became of what they have begun. Returns the number of
 * actions.
 */
export async function runLoad(
  { tenants, journal, seed, workersPerProvider, pause, withoutRushes = false }: LoadOptions,
  until: AbortSignal,
): Promise<number> {
  const possible = withoutRushes ? actions.filter(([, action]) => !rushes.has(action)) : actions;
  let done = 0;
  const providers = tenants.flatMap(({ providers }) => providers);
  const workers = providers.flatMap((provider) => Array.from({ length: workersPerProvider }, () => provider));
  await Promise.all(
    workers.map(async (provider, index) => {
      const worker: Worker = {
        random: createRandom(seed, index + 1),
        journal,
        provider,
        customers: [],
        participations: [],
        users: [],
        freeReferences: [],
      };
      await createTimeslot(worker);
      while (!until.aborted) {
        const startedMs = performance.now();
        await chooseAction(worker.random, possible)(worker);
        done += 1;
        await delay(pause(worker.random, performance.now() - startedMs));
      }
      // Even in a short run, or on a slow machine, some who have booked are erased.
      if (worker.customers.length > 0) await eraseOne(worker);
    }),
  );
  return done;
}

function chooseAction(random: Random, possible: typeof actions): (worker: Worker) => Promise<void> {
  let left = random.integer(
    1,
    possible.reduce((sum, [weight]) => sum + weight, 0),
  );
  for (const [weight, action] of possible) {
    left -= weight;
    if (left <= 0) return action;
  }
  throw new Error('the weights do not add up');
}
