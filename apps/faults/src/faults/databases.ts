import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from './fault.ts';

const hangMs = 30_000;

export const restartDatabase: Fault = {
  id: 'F4',
  name: 'restart of Postgres, fast or immediate',
  prepare: (random) => {
    const mode = random.pick(['fast', 'immediate'] as const);
    return { what: mode, parts: ['postgres'], lastsMs: 2_000, run: ({ postgres }) => postgres.restart(mode) };
  },
};

export const terminateBackends: Fault = {
  id: 'F5',
  name: 'every session of Postgres ended',
  prepare: (random) => {
    const times = random.integer(1, 3);
    return {
      what: `${times} times`,
      parts: ['postgres'],
      lastsMs: times * 300,
      run: async ({ postgres }) => {
        for (let time = 0; time < times; time += 1) {
          await postgres.terminateBackends();
          await delay(300);
        }
      },
    };
  },
};

export const hangingDatabase: Fault = {
  id: 'F6',
  name: 'SIGSTOP of Postgres for 30 s',
  prepare: (_random, { longestMs }) => {
    const ms = Math.min(longestMs, hangMs);
    return { what: `${ms / 1_000} s`, parts: ['postgres'], lastsMs: ms, run: ({ postgres }) => postgres.whileHanging(() => delay(ms)) };
  },
};
