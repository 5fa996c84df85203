import { consumedEvents, consumerName, consumingServices, streamName } from '@scheduling/events';
import { setTimeout as delay } from 'node:timers/promises';
import { republish } from '../system/event-server.ts';
import type { SystemWith } from '../system/start-system.ts';
import { type Fault, succeeds } from './fault.ts';

const fullMs = 10_000;
const downMs = 120_000;
const shuffledMs = 5_000;
/** The newest events come again. */
const repeatedCount = 2_000;

export const fullBrokerDisk: Fault<SystemWith<'single'>> = {
  id: 'F9',
  name: 'disk of NATS full',
  prepare: (_random, { longestMs }) => {
    const ms = Math.min(longestMs, fullMs);
    return {
      what: `for ${ms / 1_000} s`,
      parts: ['nats'],
      lastsMs: ms + 2_000,
      run: ({ nats }) => nats.whileDiskFull(() => delay(ms)),
    };
  },
};

export const killBroker: Fault<SystemWith<'single'>> = {
  id: 'F10',
  name: 'kill -9 of NATS',
  prepare: () => ({
    what: 'and started at once',
    parts: ['nats'],
    lastsMs: 1_000,
    run: ({ nats }) => nats.whileDown(async () => undefined),
  }),
};

export const brokerDown: Fault<SystemWith<'single'>> = {
  id: 'F11',
  name: 'NATS down for 2 minutes',
  prepare: (random, { longestMs }) => {
    const ms = Math.min(longestMs, downMs);
    const isHanging = random.chance(0.5);
    return {
      what: `${isHanging ? 'stopped' : 'down'} for ${ms / 1_000} s`,
      parts: ['nats'],
      lastsMs: ms,
      run: ({ nats }) => (isHanging ? nats.whileHanging(() => delay(ms)) : nats.whileDown(() => delay(ms))),
    };
  },
};

export const loseStore: Fault<SystemWith<'single'>> = {
  id: 'F12',
  name: 'store of NATS lost',
  prepare: () => ({ what: 'with all events', parts: ['nats'], lastsMs: 1_000, run: ({ nats }) => nats.loseStore() }),
};

export const deleteStream: Fault<SystemWith<'single'>> = {
  id: 'F13',
  name: 'stream or consumer deleted',
  prepare: (random) => {
    const consumers = consumingServices.flatMap((service) =>
      consumedEvents(service).map((event) => consumerName(service, event)),
    );
    const consumer = random.chance(0.7) ? random.pick(consumers) : undefined;
    return {
      what: consumer ?? 'the stream',
      parts: ['nats'],
      lastsMs: 500,
      // It may be gone already, because an earlier fault has lost it.
      run: ({ nats }) =>
        succeeds(
          nats.manage(({ streams, consumers }) =>
            consumer === undefined ? streams.delete(streamName) : consumers.delete(streamName, consumer),
          ),
        ),
    };
  },
};

export const repeatedEvents: Fault<SystemWith<'single'>> = {
  id: 'F14',
  name: 'events in random order, each of them twice',
  prepare: (random, { longestMs }) => {
    const ms = Math.min(longestMs, shuffledMs);
    return {
      what: `for ${ms / 1_000} s`,
      parts: ['nats'],
      lastsMs: ms + 2_000,
      run: async ({ links, nats }) => {
        const publishers = [...links.values()].filter(({ name }) => name.endsWith('-nats'));
        for (const { shuffle } of publishers) shuffle.start(random);
        await delay(ms);
        for (const { shuffle } of publishers) shuffle.stop();
        return succeeds(
          nats.manage((manager, connection) => republish(manager, connection, { count: repeatedCount, random })),
        );
      },
    };
  },
};
