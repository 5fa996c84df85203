import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { TooManyVisits } from './visit-limit.ts';

const windowMs = 60 * 60 * 1_000;
/** Programs read a calendar at least once in a day. */
const knownForMs = 48 * windowMs;
const maxCalendars = 10_000;
/** Reads of a calendar in an hour: four times as many as programs are asked for. */
export const readsPerHour = 60;

/** How often calendars are read. In this process only; of their secrets it has hashes. */
export interface CalendarLimit {
  /** What to reject the read with; undefined if it is within the limit. */
  refusal(secret: string): TooManyVisits | undefined;
  /** Whether there was a calendar with this secret within two days. */
  knows(secret: string): boolean;
  /** Counts a read of a calendar that exists, as far as is known. */
  count(secret: string): void;
}

export function createCalendarLimit(now: () => number): CalendarLimit {
  const calendars = new LRUCache<string, { reads: number; endsAtMs: number; readAtMs: number }>({ max: maxCalendars });
  const find = (secret: string) => calendars.get(hashOf(secret));
  return {
    refusal: (secret) => {
      const known = find(secret);
      if (known === undefined || known.endsAtMs <= now() || known.reads < readsPerHour) return undefined;
      return new TooManyVisits(Math.ceil((known.endsAtMs - now()) / 1_000));
    },
    knows: (secret) => now() - (find(secret)?.readAtMs ?? -Infinity) < knownForMs,
    count: (secret) => {
      const known = find(secret);
      if (known !== undefined && known.endsAtMs > now())
        Object.assign(known, { reads: known.reads + 1, readAtMs: now() });
      else calendars.set(hashOf(secret), { reads: 1, endsAtMs: now() + windowMs, readAtMs: now() });
    },
  };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64');
}
