import { AsyncLocalStorage } from 'node:async_hooks';

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

export interface BatcherOptions {
  /** The most items of a batch: those that have waited longest. No limit by default. */
  maxBatch?: number;
  /**
   * Whether every item would fail with this error, for example because a server does not answer: then none is tried
   * again. By default each one is.
   */
  failsAll?: (error: unknown) => boolean;
}

/**
 * Runs together what arrives in the same turn of the event loop, or while the previous batch is running. There is no
 * timer: an item that arrives alone runs alone. If a batch fails, it must have had no effect: its items then run one
 * after the other, so a batcher never uses more than one connection. A batch runs in the context in which the batcher
 * was created, because it belongs to no single one of its items.
 *
 * @param run returns a result for every item, in their order
 */
export function createBatcher<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  { maxBatch = Number.POSITIVE_INFINITY, failsAll = () => false }: BatcherOptions = {},
): (item: Item) => Promise<Result> {
  const waiting: Waiting<Item, Result>[] = [];
  const inOwnContext = AsyncLocalStorage.snapshot();
  let isRunning = false;

  async function proceed(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    while (waiting.length > 0) await runBatch(waiting.splice(0, maxBatch));
    isRunning = false;
  }

  /** Never rejects. */
  async function runBatch(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]!);
    } catch (error) {
      if (batch.length === 1 || failsAll(error)) for (const { reject } of batch) reject(error);
      else for (const each of batch) await runBatch([each]);
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      // After everything that arrives together with this item.
      if (waiting.length === 1) setImmediate(() => inOwnContext(() => void proceed()));
    });
}
