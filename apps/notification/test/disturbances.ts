import { startAppProcess } from '@scheduling/testing';
import type { Random } from '@scheduling/testing/random';
import { whilePaused } from '@scheduling/testing/while-paused';
import { expect, vi } from 'vitest';
import { changeSomething, type Group } from './random-changes.ts';
import type { Surroundings } from './notification-under-test.ts';

/** Lets groups make changes, as many as it is told. */
interface Gate {
  /** Whether there is one more change to be made. */
  pass(): Promise<boolean>;
  /** Lets so many be made, and resolves once as many have been. */
  let(changes: number): Promise<void>;
  made(): void;
  close(): void;
}

function createGate(): Gate {
  const state = { made: 0, allowed: 0, isClosed: false, changed: Promise.withResolvers<void>() };
  const change = (changes: Partial<typeof state>): void => {
    const { changed } = state;
    Object.assign(state, changes, { changed: Promise.withResolvers<void>() });
    changed.resolve();
  };
  return {
    pass: async () => {
      while (state.allowed === 0 && !state.isClosed) await state.changed.promise;
      if (state.allowed === 0) return false;
      state.allowed -= 1;
      return true;
    },
    let: async (changes) => {
      const until = state.made + changes;
      change({ allowed: state.allowed + changes });
      while (state.made < until) await state.changed.promise;
    },
    made: () => change({ made: state.made + 1 }),
    close: () => change({ isClosed: true }),
  };
}

interface Disturbed {
  /** The process that runs at the end. */
  notification: AsyncDisposable;
  /**
   * The ids of the requests whose mails were being sent when notification was killed, so it could not record whether
   * they had arrived.
   */
  unrecorded: Set<string>;
}

interface Disturbing extends Disturbed {
  surroundings: Surroundings;
  groups: Group[];
  random: Random;
  gate: Gate;
  notification: Awaited<ReturnType<typeof startAppProcess>>;
  identityAnswers: boolean;
  natsAnswers: boolean;
}

/** Takes something away while something else is done. */
type Disturbance = (disturbing: Disturbing, during: () => Promise<void>) => Promise<void>;

/** So many changes are made before notification ends. */
const backlog = 40;
/**
 * What was in progress when notification was killed is waited for 15 s, and what identity did not answer for up to 30
 * s; the rest depends on the machine.
 */
export const quietMs = 120_000;

/**
 * Lets the groups make so many changes, while notification is stopped, killed and started again, and so are identity
 * and NATS, alone or together with it.
 */
export async function changeWhileDisturbed(
  surroundings: Surroundings,
  groups: Group[],
  changes: number,
  random: Random,
): Promise<Disturbed> {
  const gate = createGate();
  const notification = await startAppProcess('notification', surroundings.environment);
  const disturbing: Disturbing = {
    surroundings,
    groups,
    random,
    gate,
    notification,
    unrecorded: new Set(),
    identityAnswers: true,
    natsAnswers: true,
  };
  await Promise.all([
    disturb(disturbing, changes).finally(() => gate.close()),
    ...groups.map((group) => makeChanges(disturbing, group)),
  ]);
  return disturbing;
}

async function makeChanges(disturbing: Disturbing, group: Group): Promise<void> {
  while (await disturbing.gate.pass()) {
    await changeSomething(group, disturbing);
    disturbing.gate.made();
  }
}

async function disturb(disturbing: Disturbing, changes: number): Promise<void> {
  const { random, gate } = disturbing;
  const others = random.shuffled(ofOthers);
  const rounds = random
    .shuffled(ofNotification)
    .flatMap((own, index) =>
      random.chance(0.5) ? [random.shuffled([own, others[index]!])] : random.shuffled([[own], [others[index]!]]),
    );
  const third = Math.floor((changes - ofNotification.length * backlog) / rounds.length / 3);
  for (const round of rounds) {
    await gate.let(third);
    await untilSomeArrived(disturbing);
    // Some of them are being made when it begins.
    const first = gate.let(third);
    await round.reduceRight<() => Promise<void>>(
      (during, disturbance) => () => disturbance(disturbing, during),
      () => gate.let(third),
    )();
    await first;
  }
}

/** Then others are being written and sent. */
async function untilSomeArrived({ surroundings: { smtp }, groups, random }: Disturbing): Promise<void> {
  const addresses = new Set(
    groups.flatMap(({ customers }) => customers.flatMap((customer) => customer.addresses.map(({ email }) => email))),
  );
  const due = groups.flatMap(({ participations }) =>
    participations.flatMap(({ mails }) => mails.filter(({ customer }) => !customer.isDeleted)),
  ).length;
  const arrived = (): number => smtp.mails.filter(({ recipients }) => addresses.has(recipients[0]!)).length;
  const wanted = arrived() + Math.floor((due - arrived()) * random.pick([0.1, 0.2, 0.4]));
  await vi.waitFor(() => expect(arrived()).toBeGreaterThanOrEqual(wanted), { timeout: quietMs, interval: 50 });
}

const stopNotification: Disturbance = (disturbing, during) => endNotification(disturbing, 'SIGTERM', during);

const killNotification: Disturbance = (disturbing, during) => endNotification(disturbing, 'SIGKILL', during);

async function endNotification(
  disturbing: Disturbing,
  signal: 'SIGTERM' | 'SIGKILL',
  during: () => Promise<void>,
): Promise<void> {
  const {
    surroundings: { database, environment },
    notification,
    random,
    gate,
  } = disturbing;
  const processed = await countProcessed(disturbing);
  // Many events come at once then, and it ends while some of them are being processed.
  await whilePaused([notification.pid], () => gate.let(backlog));
  if (disturbing.natsAnswers) {
    const wanted = processed + random.integer(1, backlog / 2);
    await vi.waitFor(async () => expect(await countProcessed(disturbing)).toBeGreaterThanOrEqual(wanted), {
      timeout: quietMs,
      interval: 1,
    });
  }
  expect(await notification.end(signal)).toEqual(
    signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal },
  );
  await notification[Symbol.asyncDispose]();
  const sending = await database.kysely
    .selectFrom('mail')
    .select('requestId')
    .where('state', '=', 'pending')
    .where('lease', 'is not', null)
    .execute();
  if (signal === 'SIGKILL') for (const { requestId } of sending) disturbing.unrecorded.add(requestId);
  await during();
  disturbing.notification = await startAppProcess('notification', environment);
}

async function countProcessed({ surroundings: { database } }: Disturbing): Promise<number> {
  const { count } = await database.kysely
    .selectFrom('inbox')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

const pauseIdentity: Disturbance = async (disturbing, during) => {
  disturbing.identityAnswers = false;
  await whilePaused([disturbing.surroundings.services.identity.pid], during);
  disturbing.identityAnswers = true;
};

const stopNats: Disturbance = async (disturbing, during) => {
  const { nats } = disturbing.surroundings;
  disturbing.natsAnswers = false;
  await nats.stop();
  await during();
  await nats.start();
  disturbing.natsAnswers = true;
};

const ofNotification = [stopNotification, stopNotification, killNotification, killNotification];
const ofOthers = [pauseIdentity, pauseIdentity, stopNats, stopNats];
