import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type BatcherOptions, createBatcher } from './batcher.ts';

/** Doubles numbers once its gate opens, and refuses batches that contain a negative one. */
function doubler(options?: BatcherOptions) {
  const batches: number[][] = [];
  const gates: (() => void)[] = [];
  const double = createBatcher<number, number>(async (items) => {
    batches.push(items);
    await new Promise<void>((resolve) => gates.push(resolve));
    if (items.some((item) => item < 0)) throw new Error(`refused ${items.join()}`);
    return items.map((item) => item * 2);
  }, options);
  const open = async (): Promise<void> => {
    for (const gate of gates.splice(0)) gate();
    // A batch begins after the turn in which its items arrive.
    await setImmediate();
    await setImmediate();
  };
  return { batches, double, open };
}

describe('a batcher', () => {
  it('runs together what arrives in the same turn, and while a batch is running', async () => {
    const { batches, double, open } = doubler();
    const first = [double(1), double(2)];
    await open();
    const second = [double(3), double(4)];
    await open();
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await open();
    expect(await Promise.all([...first, ...second])).toEqual([2, 4, 6, 8]);
  });

  it('runs what arrives alone alone', async () => {
    const { batches, double, open } = doubler();
    for (const item of [1, 2]) {
      const result = double(item);
      await open();
      await open();
      expect(await result).toBe(item * 2);
    }
    expect(batches).toEqual([[1], [2]]);
  });

  it('runs the items of a batch that fails one after the other, and only the one with the fault fails', async () => {
    const { batches, double, open } = doubler();
    const results = Promise.allSettled([double(1), double(-2), double(3)]);
    await open();
    await open();
    expect(batches).toEqual([[1, -2, 3], [1]]);
    const other = double(4);
    for (let turn = 0; turn < 4; turn += 1) await open();
    expect(batches).toEqual([[1, -2, 3], [1], [-2], [3], [4]]);
    expect(await results).toMatchObject([{ value: 2 }, { reason: new Error('refused -2') }, { value: 6 }]);
    expect(await other).toBe(8);
  });

  it('tries none of a batch alone if the error is not that of an item', async () => {
    const { batches, double, open } = doubler({ failsAll: (error) => String(error).includes('-2') });
    const results = Promise.allSettled([double(1), double(-2)]);
    await open();
    await open();
    expect(await results).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    expect(batches).toEqual([[1, -2]]);
  });

  it('runs a batch in its own context, not in that of one of the items', async () => {
    const context = new AsyncLocalStorage<string>();
    const read = createBatcher<string, string | undefined>(async (items) => items.map(() => context.getStore()));
    const readIn = (name: string) =>
      context.run(name, () => read(name).then((inBatch) => [inBatch, context.getStore()]));
    expect(await Promise.all([readIn('one'), readIn('other')])).toEqual([
      [undefined, 'one'],
      [undefined, 'other'],
    ]);
  });
});
