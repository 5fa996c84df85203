import { createRandom } from '@scheduling/testing/random';
import { setTimeout as delay } from 'node:timers/promises';
import { checkBlocks } from './checks/blocks.ts';
import { checkBookable } from './checks/bookable.ts';
import { checkBuffers } from './checks/buffers.ts';
import { checkDeletedProviders } from './checks/deleted-providers.ts';
import { waitUntilDrained } from './checks/drained.ts';
import { checkEffects } from './checks/effects.ts';
import { checkErasure } from './checks/erasure.ts';
import {
  type Evidence,
  type InjectedFault,
  readLists,
  readUser,
  type ShownAppointment,
  type ShownTimeslot,
  slotPeriod,
  timeslotsPath,
  type Violation,
} from './checks/evidence.ts';
import { checkHistories } from './checks/histories.ts';
import { checkDoubles, checkHours } from './checks/hours.ts';
import { checkLinks } from './checks/links.ts';
import { checkMailOrder } from './checks/mail-order.ts';
import { checkMails } from './checks/mails.ts';
import { checkProbe } from './checks/probe.ts';
import { checkReservations } from './checks/reservations.ts';
import { checkSeats } from './checks/seats.ts';
import type { Fault } from './faults/fault.ts';
import { type PlannedFault, planFaults, planRepeats } from './faults/plan.ts';
import { hangingDatabase } from './faults/databases.ts';
import { hang } from './faults/processes.ts';
import { path } from './load/client.ts';
import { followFeed, readFeed } from './load/follow-feed.ts';
import { createJournal, type Journal, type Operation } from './load/journal.ts';
import type { Tenant } from './load/model.ts';
import { createProbe, type Probe } from './load/probe.ts';
import { receiveWebhook } from './load/receive-webhook.ts';
import { type Pause, runLoad } from './load/run-load.ts';
import { setUpPassingCrm, setUpProbe, setUpTenants } from './load/set-up.ts';
import { runShortLivedProviders } from './load/short-lived-providers.ts';
import { resourcesWithHours } from './load/slots.ts';
import type { ServerKind } from './system/servers.ts';
import type { BadExit } from './system/service-group.ts';
import { startSystem, type System } from './system/start-system.ts';
import { unlessAborted } from './unless-aborted.ts';

export interface FaultOptions {
  seed: number;
  /** How long there are load and faults, in a round. */
  minutes: number;
  /**
   * Rounds follow each other until the clients have made so many changes, but no more than {@link maxRounds}. Without
   * it, there is one.
   */
  minChanges?: number;
  /** Which servers the services have. */
  servers: ServerKind;
  kinds: readonly Fault[];
  /** Instead of faults for so many minutes: each kind so many times, one fault at a time, with constant load. */
  repeat?: number | undefined;
  /** How many clients have providers that come and go. They leave less of the machine to the others. */
  passingClients: number;
  /** The checkout whose services run. */
  root: string;
  onProgress: (text: string) => void;
  /** Ends the run: it stops everything and rejects. */
  signal: AbortSignal;
}

export interface FaultReport {
  seed: number;
  servers: ServerKind;
  injected: InjectedFault[];
  journal: Journal;
  mails: number;
  events: number;
  violations: Violation[];
  /** Where the logs and the data are, if there are violations. */
  folder: string;
}

/** Random streams: 1 and up are those of the workers, 2,000 and up those of the clients whose providers come and go. */
const planStream = 0;
const checkStream = 1_000;
/** A slow machine needs more than one. */
const maxRounds = 8;
/** How long after the load clients may need to learn what became of their last requests. */
const resolveMs = 120_000;
const watchMs = 1_500;
/** How long a process has to stop. */
const stopMs = 10_000;
/** Of a client between two actions. */
const maxPauseMs = 120;
/** With it, the load is about 40 % of what two cores can do. */
const constantPauseMs = 250;

/**
 * Starts a system, breaks it while clients use it, lets it heal, and compares what is there with what the clients were
 * told.
 */
export async function runFaults(options: FaultOptions): Promise<FaultReport> {
  const { servers, root, onProgress, signal } = options;
  await using system = await startSystem({ servers, root, onProgress, signal });
  return await unlessAborted(breakSystem(system, options), signal);
}

async function breakSystem(
  system: System,
  { seed, minutes, minChanges = 0, servers, kinds, repeat, passingClients, onProgress }: FaultOptions,
): Promise<FaultReport> {
  const runMs = minutes * 60_000;
  const planning = createRandom(seed, planStream);
  const rounds =
    repeat === undefined
      ? Array.from({ length: maxRounds }, () => planFaults(planning, { kinds, runMs }))
      : [planRepeats(planning, { kinds, repeat })];
  const ended = new AbortController();
  const journal = createJournal();
  const loadStartedMs = performance.now();
  const tenants = await setUpTenants(system, journal, ended.signal);
  const passing = await setUpPassingCrm(system, journal, ended.signal);
  const probe =
    servers === 'replicated' ? await createProbe(await setUpProbe(system, journal, ended.signal)) : undefined;
  await using receiving = new AsyncDisposableStack();
  const webhooks = await Promise.all(
    tenants.map(async (tenant) => receiving.use(await receiveWebhook(tenant, journal))),
  );
  const loadEnded = new AbortController();
  receiving.defer(() => loadEnded.abort());
  const drained = new AbortController();

  onProgress(repeat === undefined ? `load and faults for ${minutes} min` : `each fault ${repeat} times`);
  const pause: Pause = (random) => (repeat === undefined ? random.integer(0, maxPauseMs) : constantPauseMs);
  const load = runLoad({ tenants, journal, seed, workersPerProvider: 2, pause }, loadEnded.signal);
  const passingLoad = runShortLivedProviders(passing, { seed, clients: passingClients, pause }, loadEnded.signal);
  const feeds = tenants.map((tenant) => followFeed(tenant, journal, drained.signal));
  const watching = watchLists(tenants, loadEnded.signal);
  const injected: InjectedFault[] = [];
  for (const [round, lanes] of rounds.entries()) {
    if (round > 0 && journal.operations.length >= minChanges) break;
    const endMs = repeat === undefined ? (round + 1) * runMs : Number.POSITIVE_INFINITY;
    const schedule = { loadStartedMs, beginMs: round * runMs, endMs, probe, onProgress };
    injected.push(...(await Promise.all(lanes.map((lane) => inject(system, lane, schedule)))).flat());
    if (repeat === undefined) await delay(Math.max(0, loadStartedMs + endMs - performance.now()));
  }
  loadEnded.abort();

  onProgress('waiting for recovery, until all work is done');
  const giveUp = setTimeout(() => ended.abort(), resolveMs);
  const violations = [...(await watching)];
  await Promise.all([load, passingLoad]);
  clearTimeout(giveUp);
  const lastFaultMs = loadStartedMs + Math.max(0, ...injected.map(({ endedMs }) => endedMs));
  violations.push(...(await waitUntilDrained(system, lastFaultMs, onProgress)));

  onProgress('checking the invariants');
  await askAgain(tenants, injected);
  const evidence = await gather({ system, journal, tenants, passing, injected, loadStartedMs });
  drained.abort();
  for (const [index, feed] of [...evidence.feeds.values()].entries()) {
    feed.followed = await feeds[index]!;
    const last = feed.followed.at(-1);
    // A feed without events is a violation, which the checks report.
    if (last !== undefined) await webhooks[index]!.waitFor(last.id);
    feed.delivered = [...webhooks[index]!.delivered];
  }
  if (probe !== undefined) violations.push(...(await checkProbe(probe, evidence)));
  violations.push(...(await check(evidence, seed)));
  if (violations.length > 0) system.keepFolder();
  return {
    seed,
    servers,
    injected,
    journal,
    mails: system.mail.mails.length,
    events: [...evidence.feeds.values()].flatMap(({ read }) => read).length,
    violations: distinct(violations),
    folder: system.folder,
  };
}

/**
 * What there is to see. Reservations still end by themselves, so it is looked at again if something happened meanwhile.
 */
async function gather(
  known: Pick<Evidence, 'system' | 'journal' | 'tenants' | 'passing' | 'injected' | 'loadStartedMs'>,
): Promise<Evidence> {
  const { tenants, journal } = known;
  const readFeeds = () => Promise.all(tenants.map((tenant) => readFeed(tenant, journal)));
  for (let before = await readFeeds(); ;) {
    const lists = await Promise.all(
      tenants.flatMap(({ providers }) =>
        providers.map(async (provider) => [provider, await readLists(provider)] as const),
      ),
    );
    const users = await Promise.all(
      tenants.flatMap(({ users }) => users.map(async (user) => [user, await readUser(user)] as const)),
    );
    const after = await readFeeds();
    const feeds = tenants.map(
      (tenant, index) => [tenant, { read: after[index]!, followed: [], delivered: [] }] as const,
    );
    if (after.every((events, index) => events.length === before[index]!.length))
      return { ...known, lists: new Map(lists), users: new Map(users), feeds: new Map(feeds) };
    before = after;
  }
}

async function check(evidence: Evidence, seed: number): Promise<Violation[]> {
  const { lists, journal, system } = evidence;
  const violations = [
    ...[...lists].flatMap(([provider, { appointments }]) => checkSeats(provider, appointments)),
    ...checkEffects(evidence),
    ...checkMails(evidence),
    ...checkMailOrder(evidence),
    ...(await checkErasure(evidence)),
    ...(await checkDeletedProviders(evidence)),
    ...checkHistories(evidence),
    ...checkHours(evidence),
    ...checkBlocks(evidence),
    ...checkBuffers(evidence),
    ...(await checkLinks(evidence)),
    ...journal.surprises.map(asViolation),
    ...Object.values(system.groups).flatMap(({ badExits }) =>
      badExits.filter((exit) => !waitedInVain(exit, evidence)).map(({ text }) => asViolation(text)),
    ),
  ];
  const random = createRandom(seed, checkStream);
  for (const [provider, shown] of lists) violations.push(...(await checkBookable(provider, shown, random)));
  violations.push(...(await checkReservations(system)));
  return violations;
}

/**
 * A process that stood still reads what was sent to it meanwhile as if it had just come, so an attempt that was not
 * answered may have an effect after a later one was rejected (see reliability.md). A client that must know asks.
 */
async function askAgain(tenants: readonly Tenant[], injected: readonly InjectedFault[]): Promise<void> {
  const pauses = injected.filter(({ fault }) => fault === hang);
  const wasPaused = ({ startedMs, endedMs }: Operation): boolean =>
    pauses.some((pause) => pause.startedMs < endedMs && startedMs < pause.endedMs);
  for (const { client, providers } of tenants) {
    for (const { at, participations } of providers) {
      for (const { reference, changes } of participations) {
        const { operation } = changes[0]!;
        if (operation.outcome !== 'failed' || operation.unknowns === 0 || !wasPaused(operation)) continue;
        const { status } = await client.read(at + path`/participations/${reference}`, {}, [200, 404]);
        if (status === 200) operation.outcome = 'ok';
      }
    }
  }
}

/** A process that is stopped while its database hangs is not done in time: it ends with 1, and loses nothing. */
function waitedInVain({ atMs, isSlow }: BadExit, { injected, loadStartedMs }: Evidence): boolean {
  const exitMs = atMs - loadStartedMs;
  return (
    isSlow &&
    injected.some(
      ({ fault, startedMs, endedMs }) => fault === hangingDatabase && startedMs < exitMs && exitMs < endedMs + stopMs,
    )
  );
}

/** What a client must never see is a broken promise about the answers (I2), unless it names another. */
function asViolation(text: string): Violation {
  const [named] = /^I\d+(?= )/.exec(text) ?? [];
  return { invariant: (named ?? 'I2') as Violation['invariant'], text };
}

interface Schedule {
  loadStartedMs: number;
  /** Of the round, after the start of the load. */
  beginMs: number;
  endMs: number;
  probe: Probe | undefined;
  onProgress: (text: string) => void;
}

/** One after the other. What a slow machine has no time left for does not happen. */
async function inject(
  system: System,
  lane: readonly PlannedFault[],
  { loadStartedMs, beginMs, endMs, probe, onProgress }: Schedule,
): Promise<InjectedFault[]> {
  const injected: InjectedFault[] = [];
  for (const planned of lane) {
    await delay(Math.max(0, loadStartedMs + beginMs + planned.atMs - performance.now()));
    const startedMs = performance.now() - loadStartedMs;
    if (startedMs > endMs) {
      injected.push({ ...planned, startedMs, endedMs: startedMs, hasHappened: false });
      continue;
    }
    onProgress(
      `${(startedMs / 1_000).toFixed(1).padStart(6)} s  ${planned.fault.id} ${planned.fault.name}: ${planned.what}`,
    );
    const run = (accepting: () => void): Promise<boolean | void> => planned.run(system, accepting);
    const { result, recovery } =
      probe !== undefined && planned.parts.includes('postgres')
        ? await probe.during(run)
        : { result: await run(() => undefined) };
    const hasHappened = result !== false;
    injected.push({ ...planned, startedMs, endedMs: performance.now() - loadStartedMs, hasHappened, recovery });
  }
  return injected;
}

/**
 * Asks for the appointments and the timeslots of everybody in turn, while things break: no seat is ever given twice, and
 * no timeslot made twice, not even for a moment.
 */
async function watchLists(tenants: readonly Tenant[], until: AbortSignal): Promise<Violation[]> {
  const violations: Violation[] = [];
  const providers = tenants.flatMap((tenant) => tenant.providers);
  for (let turn = 0; !until.aborted; turn += 1) {
    const provider = providers[turn % providers.length]!;
    const answer = await provider.tenant.client.send({ method: 'GET', path: `${provider.at}/appointments` });
    if (answer?.status === 200) violations.push(...checkSeats(provider, answer.body as ShownAppointment[]));
    const resource = resourcesWithHours[Math.floor(turn / providers.length) % resourcesWithHours.length]!;
    const made = await provider.tenant.client.send({
      method: 'GET',
      path: timeslotsPath(provider, resource),
      query: slotPeriod,
    });
    if (made?.status === 200) violations.push(...checkDoubles(made.body as ShownTimeslot[]));
    await delay(watchMs, undefined, { signal: until }).catch(() => undefined);
  }
  return violations;
}

function distinct(violations: readonly Violation[]): Violation[] {
  return [...new Map(violations.map((violation) => [`${violation.invariant} ${violation.text}`, violation])).values()];
}
