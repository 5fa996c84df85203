import { type Finding, ok, warning } from './finding.ts';

const toleranceMs = 1_000;

/** A clock that was read over the network between two moments of this machine's own. */
export interface ClockReading {
  time: Date;
  askedMs: number;
  answeredMs: number;
}

/** The clock is off by at least this much; the duration of the call is allowed for. */
export function checkClock(whose: string, { time, askedMs, answeredMs }: ClockReading): Finding {
  const check = `clock of ${whose}`;
  const offMs = time.getTime() < askedMs ? time.getTime() - askedMs : Math.max(0, time.getTime() - answeredMs);
  if (Math.abs(offMs) <= toleranceMs) return ok(check, 'agrees with this machine');
  const seen = `${(Math.abs(offMs) / 1_000).toFixed(1)} s ${offMs < 0 ? 'behind' : 'ahead of'} this machine`;
  return warning(
    check,
    seen,
    'synchronise both machines with a time server: reservations and leases expire by the clock of Postgres, keys by that of the gateway',
  );
}
