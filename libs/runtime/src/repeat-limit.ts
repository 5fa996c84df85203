import { AsyncLocalStorage } from 'node:async_hooks';

/** Limits how often the same line is written. */
export interface RepeatLimit {
  /**
   * Whether a line may be written now. If not, it is counted.
   *
   * @param key what the line has in common with its repetitions
   * @param summarize writes how many of these lines were left out; called outside of any request
   */
  admits(key: string, summarize: (suppressed: number) => void): boolean;
  /** Writes the counts of what was left out until now. */
  flush(): void;
}

const windowMs = 1_000;
const linesPerWindow = 10;
/** With more keys, a window ends early. */
const maxKeys = 1_000;

/**
 * Admits the first ten lines of each key in a second, which begins with the first line of any key. The counts of the
 * others are written when it is over, and when the process exits.
 */
export function createRepeatLimit(): RepeatLimit {
  // A summary must not have the id of the request that caused the last line.
  const outside = AsyncLocalStorage.snapshot();
  const counted = new Map<string, { lines: number; summarize: (suppressed: number) => void }>();
  let beganMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function begin(): void {
    beganMs = performance.now();
    timer = outside(() => setTimeout(end, windowMs)).unref();
  }

  function end(): void {
    clearTimeout(timer);
    process.off('exit', end);
    const ended = [...counted.values()];
    counted.clear();
    outside(() => {
      for (const { lines, summarize } of ended) if (lines > linesPerWindow) summarize(lines - linesPerWindow);
    });
  }

  return {
    admits: (key, summarize) => {
      // A busy process is late for its timers.
      const isOver = performance.now() - beganMs >= windowMs || (counted.size >= maxKeys && !counted.has(key));
      if (counted.size > 0 && isOver) end();
      if (counted.size === 0) begin();
      const lines = (counted.get(key)?.lines ?? 0) + 1;
      counted.set(key, { lines, summarize });
      if (lines > linesPerWindow && !process.listeners('exit').includes(end)) process.on('exit', end);
      return lines <= linesPerWindow;
    },
    flush: end,
  };
}
