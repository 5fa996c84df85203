import { signalProcess } from '@scheduling/embedded';
import { type Service, services } from '@scheduling/stack';
import type { Random } from '@scheduling/testing/random';
import { whilePaused } from '@scheduling/testing/while-paused';
import { setTimeout as delay } from 'node:timers/promises';
import type { Orders, Point, Step } from '../system/orders.ts';
import type { Replica } from '../system/service-group.ts';
import type { System } from '../system/start-system.ts';
import type { Fault } from './fault.ts';

/**
 * Longer than a lease of notification (15 s) or of webhook (10 s), and than NATS waits for an acknowledgement (15 s).
 */
const beyondLeaseMs = 20_000;
const clockOffsetMs = 10 * 60_000;
const wrongMs = 10_000;
/** How long a service takes to start. */
const restartMs = 2_500;
/** How long a process has to get to the point where it is to end. */
const reachMs = 8_000;

/** Where each service passes often enough to be killed there. */
const stepsOf: Record<Service, Step[]> = {
  gateway: ['answer'],
  page: ['answer'],
  identity: ['answer'],
  calendar: ['commit', 'answer', 'publish', 'mark', 'inbox-commit', 'ack'],
  customer: ['commit', 'answer', 'publish', 'mark', 'inbox-commit', 'ack'],
  notification: ['inbox-commit', 'ack', 'data', 'mark-sent'],
  webhook: ['record', 'ack', 'commit', 'post'],
};

export const kill: Fault = {
  id: 'F1',
  name: 'kill -9 of a service at a random moment',
  prepare: (random) => {
    const chosen = chooseReplicas(random);
    return {
      what: chosen.what,
      parts: [chosen.service],
      lastsMs: restartMs,
      run: async (system) => {
        const victims = chosen.of(system);
        for (const { child } of victims) signalProcess(child.pid, 'SIGKILL');
        await Promise.all(victims.map(({ child }) => child.exited));
      },
    };
  },
};

export const crashPoint: Fault = {
  id: 'F2',
  name: 'kill -9 at a crash point',
  prepare: (random) => {
    const service = random.pick(services);
    const point: Point = `${random.pick(['before', 'after'] as const)}-${random.pick(stepsOf[service])}`;
    const crash = { point, after: random.integer(1, 3) };
    return {
      what: `${service} ${point}`,
      parts: [service],
      lastsMs: restartMs,
      run: (system) => crashOne(system, service, { crash, clockOffsetMs: 0 }),
    };
  },
};

export const rollingRestart: Fault = {
  id: 'F3',
  name: 'rolling restart by SIGTERM',
  prepare: (random) => {
    const chosen = random.shuffled(services).slice(0, random.integer(1, 3));
    return {
      what: chosen.join(', '),
      parts: chosen,
      lastsMs: chosen.length * restartMs,
      run: async ({ groups }) => {
        for (const service of chosen) await groups[service].replaceAll();
      },
    };
  },
};

export const hang: Fault = {
  id: 'F16',
  name: 'SIGSTOP of a service for longer than its leases',
  prepare: (random, { longestMs }) => {
    const chosen = chooseReplicas(random);
    const ms = Math.min(longestMs, beyondLeaseMs);
    const run = (system: System): Promise<void> =>
      whilePaused(
        chosen.of(system).map(({ child }) => child.pid),
        () => delay(ms),
      );
    return { what: `${chosen.what} for ${ms / 1_000} s`, parts: [chosen.service], lastsMs: ms, run };
  },
};

export const wrongClock: Fault = {
  id: 'F17',
  name: 'clock of a service 10 minutes off',
  prepare: (random, { longestMs }) => {
    const chosen = chooseReplicas(random);
    const offset = random.pick([-clockOffsetMs, clockOffsetMs]);
    const ms = Math.min(longestMs, wrongMs);
    const run = async (system: System): Promise<void> => {
      const replicas = chosen.of(system);
      await orderAll(system, replicas, { clockOffsetMs: offset });
      await delay(ms);
      await orderAll(system, replicas, { clockOffsetMs: 0 });
    };
    return {
      what: `${chosen.what} ${offset > 0 ? 'ahead' : 'behind'} for ${ms / 1_000} s`,
      parts: [chosen.service],
      lastsMs: ms,
      run,
    };
  },
};

/** One of the replicas of a service, or all of them. */
function chooseReplicas(random: Random): {
  service: Service;
  what: string;
  of: (system: System) => readonly Replica[];
} {
  const service = random.pick(services);
  const isAll = random.chance(0.4);
  return {
    service,
    what: isAll ? `all of ${service}` : `one of ${service}`,
    of: ({ groups }) => groups[service].ready.slice(0, isAll ? undefined : 1),
  };
}

/** Those that have ended meanwhile get none. */
async function orderAll(system: System, replicas: readonly Replica[], orders: Orders): Promise<void> {
  const alive = new Set(Object.values(system.groups).flatMap(({ ready }) => ready));
  await Promise.all(replicas.filter((replica) => alive.has(replica)).map((replica) => system.order(replica, orders)));
}

/** Orders all replicas to end at a point, until the first one has. False if none has in time: it did not get there. */
async function crashOne(system: System, service: Service, orders: Orders): Promise<boolean> {
  const replicas = system.groups[service].ready;
  if (replicas.length === 0) return false;
  const oneHasEnded = Promise.race(replicas.map(({ child }) => child.exited.then(() => true)));
  await orderAll(system, replicas, orders);
  const hasEnded = await Promise.race([oneHasEnded, delay(reachMs).then(() => false)]);
  await orderAll(system, replicas, { clockOffsetMs: 0 });
  return hasEnded;
}
