/** Wakes a loop that waits. */
export interface Bell {
  /** A ring while nobody waits is remembered. */
  ring: () => void;
  /** Until the next ring, or for this many milliseconds. */
  wait(timeoutMs: number): Promise<void>;
}

export function createBell(): Bell {
  let rung = false;
  let answer: (() => void) | undefined;
  return {
    ring: () => {
      rung = true;
      answer?.();
    },
    wait: async (timeoutMs) => {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          answer = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
      answer = undefined;
    },
  };
}
