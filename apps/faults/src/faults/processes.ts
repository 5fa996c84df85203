import { type Service, services } from '@scheduling/stack';
import { setTimeout as delay } from 'node:timers/promises';
import { whilePaused } from '@scheduling/testing/while-paused';
import type { Point, Step } from '../system/orders.ts';
import type { System } from '../system/start-system.ts';
import type { Fault } from './fault.ts';

/** Longer than a lease of notification (15 s) or of webhook (10 s), and than NATS waits for an acknowledgement (15 s). */
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
  identity: ['answer'],
  calendar: ['commit', 'answer', 'publish', 'mark', 'inbox-commit', 'ack'],
  customer: ['commit', 'answer', 'publish', 'mark', 'inbox-commit', 'ack'],
  notification: ['inbox-commit', 'ack', 'data', 'mark-sent'],
  webhook: ['inbox-commit', 'ack', 'commit', 'post'],
};

export const kill: Fault = {
  id: 'F1',
  name: 'kill -9 of a service at any moment',
  prepare: (random) => {
    const service = random.pick(services);
    return { what: service, parts: [service], lastsMs: restartMs, run: async (system) => void (await endAndWait(system, service, () => system.groups[service].signal('SIGKILL'))) };
  },
};

export const crashPoint: Fault = {
  id: 'F2',
  name: 'kill -9 at a crash point',
  prepare: (random) => {
    const service = random.pick(services);
    const point: Point = `${random.pick(['before', 'after'] as const)}-${random.pick(stepsOf[service])}`;
    const crash = { point, after: random.integer(1, 3) };
    return { what: `${service} ${point}`, parts: [service], lastsMs: restartMs, run: (system) => endAndWait(system, service, () => orderAll(system, service, { crash, clockOffsetMs: 0 })) };
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
  name: 'SIGSTOP of a service, beyond its leases',
  prepare: (random, { longestMs }) => {
    const service = random.pick(services);
    const ms = Math.min(longestMs, beyondLeaseMs);
    const run = ({ groups }: System): Promise<void> => whilePaused(groups[service].ready.map(({ child }) => child.pid), () => delay(ms));
    return { what: `${service} for ${ms / 1_000} s`, parts: [service], lastsMs: ms, run };
  },
};

export const wrongClock: Fault = {
  id: 'F17',
  name: 'clock of a service 10 minutes off',
  prepare: (random, { longestMs }) => {
    const service = random.pick(services);
    const offset = random.pick([-clockOffsetMs, clockOffsetMs]);
    const ms = Math.min(longestMs, wrongMs);
    const run = async (system: System): Promise<void> => {
      await orderAll(system, service, { clockOffsetMs: offset });
      await delay(ms);
      await orderAll(system, service, { clockOffsetMs: 0 });
    };
    return { what: `${service} ${offset > 0 ? 'ahead' : 'behind'} for ${ms / 1_000} s`, parts: [service], lastsMs: ms, run };
  },
};

async function orderAll({ groups, order }: System, service: Service, orders: Parameters<System['order']>[1]): Promise<void> {
  await Promise.all(groups[service].ready.map((replica) => order(replica, orders)));
}

/** False if no process has ended in time: it did not get to the point. */
async function endAndWait(system: System, service: Service, end: () => unknown): Promise<boolean> {
  const { groups } = system;
  const before = [...groups[service].ready];
  if (before.length === 0) return false;
  const oneHasEnded = Promise.race(before.map(({ child }) => child.exited.then(() => true)));
  await end();
  const hasEnded = await Promise.race([oneHasEnded, delay(reachMs).then(() => false)]);
  if (!hasEnded) await orderAll(system, service, { clockOffsetMs: 0 });
  return hasEnded;
}
