import { services } from '@scheduling/stack';
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../system/start-system.ts';
import type { Fault } from './fault.ts';

const silenceMs = 15_000;
const badMs = 8_000;

export const halfOpen: Fault = {
  id: 'F18',
  name: 'a connection that is dead without a word, or cut',
  prepare: (random, { longestMs }) => {
    const caller = random.pick(services);
    // Which of its links is decided when all of them are known.
    const number = random.integer(0, 1_000);
    const isCut = random.chance(0.3);
    const ms = Math.min(longestMs, silenceMs);
    return {
      what: isCut ? `cut, one of ${caller}'s` : `silent for ${ms / 1_000} s, one of ${caller}'s`,
      parts: [caller],
      lastsMs: isCut ? 100 : ms,
      run: async ({ links }) => {
        const own = [...links.values()].filter(({ name }) => name.startsWith(`${caller}-`));
        const link = own[number % own.length]!;
        if (isCut) return link.cut();
        link.silence();
        await delay(ms);
        link.restore();
      },
    };
  },
};

export const badMailServer: Fault = {
  id: 'F15',
  name: 'mail server refuses, is slow, or closes the connection in DATA',
  prepare: (random, { longestMs }) => {
    const mood = random.pick(['refusing', 'slow', 'cutting'] as const);
    const ms = Math.min(longestMs, badMs);
    return {
      what: `${mood} for ${ms / 1_000} s`,
      parts: ['mail'],
      lastsMs: ms,
      run: async ({ mail }: System) => {
        mail.mood = mood;
        await delay(ms);
        mail.mood = 'good';
      },
    };
  },
};
