import { describe, expect, it } from 'vitest';
import { checkClock } from './check-clock.ts';

/** Requested at second 100 of this machine's clock, received at second 104. */
const read = (seconds: number) =>
  checkClock('Postgres', { time: new Date(seconds * 1_000), askedMs: 100_000, answeredMs: 104_000 });

describe('a clock', () => {
  it('agrees if it may have been read at any moment of the call, or within a second of it', () => {
    for (const seconds of [99, 100, 102, 104, 105]) expect(read(seconds)).toMatchObject({ level: 'ok' });
  });

  it('is off by whatever the call does not explain', () => {
    expect(read(97)).toMatchObject({ check: 'clock of Postgres', level: 'warning', seen: '3.0 s behind this machine' });
    expect(read(105.5)).toMatchObject({ level: 'warning', seen: '1.5 s ahead of this machine' });
  });
});
