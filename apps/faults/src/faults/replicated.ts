import type { Random } from '@scheduling/testing/random';
import { setTimeout as delay } from 'node:timers/promises';
import { watchMs } from '../load/probe.ts';
import type { Victims } from '../system/event-cluster.ts';
import type { SystemWith } from '../system/start-system.ts';
import type { Fault } from './fault.ts';

type Replicated = SystemWith<'replicated'>;

/** How long it takes until somebody, or a tool, has noticed that the primary is gone. */
const noticedMs = { shortest: 1_000, longest: 3_000 };
/** How long the former primary stays away. */
const awayMs = 3_000;
const mistakenMs = 8_000;
const standbyDownMs = 10_000;
const splitMs = 10_000;
const leaderDownMs = 5_000;
const brokersDownMs = 10_000;
/** To copy the primary, and to start the copy. */
const rejoinMs = 2_000;

export const primaryKilled: Fault<Replicated> = {
  id: 'F20',
  name: 'primary of Postgres killed, standby promoted',
  prepare: (random) => {
    const ms = random.integer(noticedMs.shortest, noticedMs.longest);
    return {
      what: `after ${ms / 1_000} s`,
      parts: ['postgres'],
      lastsMs: ms + Math.max(watchMs, awayMs + rejoinMs),
      run: async ({ postgres }, accepting) => {
        await postgres.end('kill');
        await delay(ms);
        await postgres.promote();
        postgres.switchTo('primary');
        accepting();
        await delay(awayMs);
        await postgres.rejoin();
      },
    };
  },
};

export const primaryDemoted: Fault<Replicated> = {
  id: 'F21',
  name: 'primary of Postgres shut down, standby promoted',
  prepare: () => ({
    what: 'as for maintenance',
    parts: ['postgres'],
    lastsMs: 1_000 + watchMs,
    run: async ({ postgres }, accepting) => {
      await postgres.end('fast');
      await postgres.promote();
      postgres.switchTo('primary');
      accepting();
      await postgres.rejoin();
    },
  }),
};

export const standbyReached: Fault<Replicated> = {
  id: 'F22',
  name: 'standby of Postgres reached by mistake',
  prepare: (random, { longestMs }) => {
    const ms = Math.min(longestMs, mistakenMs);
    const cuts = chooseCuts(random);
    return {
      what: `for ${ms / 1_000} s, ${cuts.what}`,
      parts: ['postgres'],
      lastsMs: ms + watchMs,
      run: async (system, accepting) => {
        system.postgres.switchTo('standby');
        cuts.cut(system);
        await delay(ms);
        system.postgres.switchTo('primary');
        accepting();
      },
    };
  },
};

export const standbyDown: Fault<Replicated> = {
  id: 'F23',
  name: 'only synchronous standby of Postgres down',
  prepare: (_random, { longestMs }) => {
    const ms = Math.min(longestMs, standbyDownMs);
    return {
      what: `for ${ms / 1_000} s`,
      parts: ['postgres'],
      lastsMs: ms + 1_000 + watchMs,
      run: async ({ postgres }, accepting) => {
        await postgres.whileStandbyDown(() => delay(ms));
        accepting();
      },
    };
  },
};

export const splitBrain: Fault<Replicated> = {
  id: 'F24',
  name: 'standby of Postgres promoted while the primary keeps running',
  prepare: (random, { longestMs }) => {
    const ms = Math.min(longestMs, splitMs);
    const cuts = chooseCuts(random);
    return {
      what: `for ${ms / 1_000} s, ${cuts.what}`,
      parts: ['postgres'],
      lastsMs: Math.max(watchMs, ms + rejoinMs),
      run: async (system, accepting) => {
        const { postgres } = system;
        await postgres.promote();
        postgres.switchTo('primary');
        cuts.cut(system);
        accepting();
        await delay(ms);
        await postgres.rejoin();
      },
    };
  },
};

export const streamLeaderKilled = brokersKilled('F25', 'leader of the stream killed', 'leader', leaderDownMs);
export const quorumLost = brokersKilled('F26', 'two of three NATS servers killed', 'majority', brokersDownMs);
export const allBrokersKilled = brokersKilled('F27', 'all NATS servers killed', 'all', brokersDownMs);

function brokersKilled(id: string, name: string, which: Victims, mostMs: number): Fault<Replicated> {
  return {
    id,
    name,
    prepare: (random, { longestMs }) => {
      const ms = random.integer(0, Math.min(longestMs, mostMs));
      return {
        what: `for ${ms / 1_000} s`,
        parts: ['nats'],
        lastsMs: ms + 3_000,
        run: ({ nats }) => nats.whileDown(which, () => delay(ms)),
      };
    },
  };
}

/**
 * Whether a switch closes the connections that exist. A Service of Kubernetes, and many proxies, move new ones only.
 */
function chooseCuts(random: Random): { what: string; cut: (system: Replicated) => void } {
  if (random.chance(0.5)) return { what: 'new connections only', cut: () => undefined };
  return {
    what: 'all connections',
    cut: ({ links }) => {
      for (const link of links.values()) if (link.name.endsWith('-postgres')) link.cut();
    },
  };
}
