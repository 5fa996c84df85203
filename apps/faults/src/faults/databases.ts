import { withClient } from '@scheduling/embedded';
import { databaseServices, type DatabaseService } from '@scheduling/stack';
import { setTimeout as delay } from 'node:timers/promises';
import type { SystemWith } from '../system/start-system.ts';
import { type Fault, succeeds } from './fault.ts';

const hangMs = 30_000;
const lockedMs = 8_000;
const fullMs = 10_000;

/** The table that most statements of a service need. */
const busiestTable: Record<DatabaseService, string> = {
  identity: 'provider',
  calendar: 'appointment',
  customer: 'customer',
  notification: 'mail',
  webhook: 'event',
};

export const restartDatabase: Fault<SystemWith<'single'>> = {
  id: 'F4',
  name: 'restart of Postgres, fast or immediate',
  prepare: (random) => {
    const mode = random.pick(['fast', 'immediate'] as const);
    return { what: mode, parts: ['postgres'], lastsMs: 2_000, run: ({ postgres }) => postgres.restart(mode) };
  },
};

export const terminateBackends: Fault<SystemWith<'single'>> = {
  id: 'F5',
  name: 'all Postgres sessions terminated',
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

export const hangingDatabase: Fault<SystemWith<'single'>> = {
  id: 'F6',
  name: 'SIGSTOP of Postgres for 30 s',
  prepare: (_random, { longestMs }) => {
    const ms = Math.min(longestMs, hangMs);
    return {
      what: `${ms / 1_000} s`,
      parts: ['postgres'],
      lastsMs: ms,
      run: ({ postgres }) => postgres.whileHanging(() => delay(ms)),
    };
  },
};

export const exhaustedPool: Fault = {
  id: 'F7',
  name: 'all connections of a service wait for a lock',
  prepare: (random, { longestMs }) => {
    const service = random.pick(databaseServices);
    const ms = Math.min(longestMs, lockedMs);
    return {
      what: `${service} for ${ms / 1_000} s`,
      parts: [service],
      lastsMs: ms,
      // Another fault may end the session that holds the lock, or keep it from beginning.
      run: ({ postgres }) =>
        succeeds(
          withClient(postgres.url(service), async (client) => {
            await client.query('BEGIN');
            await client.query(`LOCK TABLE ${busiestTable[service]} IN ACCESS EXCLUSIVE MODE`);
            await delay(ms);
            await client.query('ROLLBACK');
          }),
        ),
    };
  },
};

export const fullDatabaseDisk: Fault<SystemWith<'single'>> = {
  id: 'F8',
  name: 'disk of Postgres full',
  prepare: (_random, { longestMs }) => {
    const ms = Math.min(longestMs, fullMs);
    return {
      what: `for ${ms / 1_000} s`,
      parts: ['postgres'],
      lastsMs: ms + 2_000,
      run: ({ postgres }) => postgres.whileDiskFull(() => delay(ms)),
    };
  },
};
