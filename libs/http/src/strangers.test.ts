import { describe, expect, it } from 'vitest';
import { TooManyStrangers } from './errors.ts';
import { createStrangers, type Strangers } from './strangers.ts';

const freeFailures = 300;

function failing(times: number, now = () => 0): Strangers {
  const strangers = createStrangers(now, freeFailures);
  for (let time = 0; time < times; time += 1) strangers.noteFailure('stranger');
  return strangers;
}

/** Whether it would wait; no wait is shorter. */
function waits(strangers: Strangers, address: string): Promise<boolean> {
  return strangers.delay(address, AbortSignal.timeout(50)).then(
    () => false,
    (error: Error) => error.name === 'AbortError',
  );
}

describe('a stranger', () => {
  it('waits once it has failed too often, and others do not', async () => {
    expect(await waits(failing(freeFailures - 1), 'stranger')).toBe(false);
    const strangers = failing(freeFailures);
    expect(await waits(strangers, 'stranger')).toBe(true);
    expect(await waits(strangers, 'other')).toBe(false);
  });

  it('is forgiven after a minute', async () => {
    let nowMs = 0;
    const strangers = failing(freeFailures, () => nowMs);
    nowMs = 59_999;
    expect(await waits(strangers, 'stranger')).toBe(true);
    nowMs = 60_000;
    expect(await waits(strangers, 'stranger')).toBe(false);
  });

  it('is refused if hundreds of its requests wait, until their clients are gone', async () => {
    const strangers = failing(freeFailures);
    const gone = new AbortController();
    const waiting = Array.from({ length: 501 }, () => strangers.delay('stranger', gone.signal).catch(() => undefined));
    await expect(strangers.delay('stranger', gone.signal)).rejects.toThrow(TooManyStrangers);
    gone.abort();
    await Promise.all(waiting);
    expect(await waits(strangers, 'stranger')).toBe(true);
  });
});
