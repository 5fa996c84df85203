import { services } from '@scheduling/stack';
import { reportMemory } from '@scheduling/testing/held-memory';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntilDrained } from '../checks/drained.ts';
import { followFeed } from '../load/follow-feed.ts';
import { createJournal, type Journal } from '../load/journal.ts';
import { receiveWebhook } from '../load/receive-webhook.ts';
import { type Pause, runLoad } from '../load/run-load.ts';
import { setUpTenants } from '../load/set-up.ts';
import { startSystem, type System, type SystemWith } from '../system/start-system.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { followResident, followUse, type Handles, type Memory, watchHandles } from './resources.ts';

export interface SoakOptions {
  minutes: number;
  /** In percent of the capacity. */
  load: number;
  /** Replace all processes meanwhile. */
  restart: boolean;
  /** The checkout whose services run. */
  root: string;
  onProgress: (text: string) => void;
  /** Ends the run: it stops everything and rejects. */
  signal: AbortSignal;
}

export interface SoakReport {
  minutes: number;
  /** Requests of the same mixture per second. */
  capacity: number;
  requests: Journal['requests'];
  /** Processes that were replaced. */
  restarts: number;
  /** After how many minutes memory should not grow any more, and what it was from then on: resident, and in use. */
  warmMinutes: number;
  resident: Memory;
  /** Empty if processes were replaced: each begins anew. */
  used: Memory;
  handles: { before: Map<string, Handles>; after: Map<string, Handles> };
  /** Faults other than failed requests. */
  faults: string[];
}

const seed = 1;
const workersPerProvider = 4;
/** Before the capacity is measured. */
const warmUpMs = 60_000;
/** Before memory is watched: so many minutes, but at most a third of them all. */
const longestWarmMinutes = 10;
const capacityMs = 20_000;
/** Idle connections to Postgres are closed after 30 s, idle files of the store of NATS every 2 minutes. */
const restMs = 150_000;

/** Sends a system a constant load, and watches its responses and the resources of its processes. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { root, onProgress, signal } = options;
  await using system = await startSystem({ servers: 'single', root, nodeOptions: reportMemory, onProgress, signal });
  return await unlessAborted(useSystem(system, options), signal);
}

async function useSystem(
  system: SystemWith<'single'>,
  { minutes, load, restart, onProgress }: SoakOptions,
): Promise<SoakReport> {
  const journal = createJournal();
  const tenants = await setUpTenants(system, journal, new AbortController().signal);
  const workers = workersPerProvider * tenants.flatMap(({ providers }) => providers).length;
  await using receiving = new AsyncDisposableStack();
  for (const tenant of tenants) receiving.use(await receiveWebhook(tenant, journal));
  const following = new AbortController();
  const followed = tenants.map((tenant) => followFeed(tenant, journal, following.signal));
  const use = (ms: number, pause: Pause): Promise<number> =>
    runLoad({ tenants, journal, seed, workersPerProvider, pause, withoutRushes: true }, AbortSignal.timeout(ms));
  const rest = async (): Promise<{ left: string[]; handles: Map<string, Handles> }> => {
    onProgress('waiting until all work is done');
    const left = await waitUntilDrained(system, performance.now(), onProgress);
    return { left: left.map(({ text }) => text), handles: await watchHandles(system, restMs) };
  };

  onProgress('measuring the capacity');
  await use(warmUpMs, () => 0);
  const sentBefore = journal.requests.sent;
  const actions = await use(capacityMs, () => 0);
  const capacity = ((journal.requests.sent - sentBefore) * 1_000) / capacityMs;
  const { handles: before } = await rest();
  const earlier = { sent: journal.requests.sent, unserved: journal.requests.unserved.length };

  onProgress(`${load} % of ${capacity.toFixed(0)} requests per second for ${minutes} min`);
  const periodMs = (workers * capacityMs * 100) / (actions * load);
  const until = AbortSignal.timeout(minutes * 60_000);
  const warmMinutes = Math.min(longestWarmMinutes, minutes / 3);
  const watching = delay(warmMinutes * 60_000).then(
    async () => await Promise.all([followResident(system, until), restart ? new Map() : followUse(system, until)]),
  );
  // It is awaited later.
  watching.catch(() => undefined);
  const restarting = restart ? restartAll(system, until) : Promise.resolve(0);
  await use(minutes * 60_000, (random, tookMs) =>
    Math.max(0, random.integer(Math.round(periodMs / 2), Math.round((periodMs * 3) / 2)) - tookMs),
  );
  const requests = {
    sent: journal.requests.sent - earlier.sent,
    unserved: journal.requests.unserved.slice(earlier.unserved),
  };
  const restarts = await restarting;
  const { left, handles: after } = await rest();
  following.abort();
  await Promise.all(followed);
  const badExits = Object.values(system.groups).flatMap((group) => group.badExits.map(({ text }) => text));
  const [resident, used] = await watching;
  return {
    minutes,
    capacity,
    requests,
    restarts,
    warmMinutes,
    resident,
    used,
    handles: { before, after },
    faults: [...journal.surprises, ...badExits, ...left],
  };
}

/**
 * Until a new process has compiled its code and the next one is replaced; Kubernetes waits for 35 s
 * (`minReadySeconds`).
 */
const pauseMs = 5_000;

/** Replaces the processes of one service after the other, until the signal aborts, and all of them at least once. */
async function restartAll({ groups }: System, until: AbortSignal): Promise<number> {
  let restarts = 0;
  do {
    for (const service of services) {
      restarts += groups[service].ready.length;
      await groups[service].replaceAll(pauseMs);
    }
  } while (!until.aborted);
  return restarts;
}
