/** Bounds the bytes that requests hold: in all, and per owner, such as a tenant. */
export interface ByteBudget {
  /** Undefined if they do not fit; otherwise they are held until the result is disposed of. */
  tryHold(owner: string, bytes: number): Disposable | undefined;
  /** Holds what exists already, whether it fits or not. */
  hold(owner: string, bytes: number): Disposable;
}

export function createByteBudget(limits: { total: number; perOwner: number }): ByteBudget {
  const held = new Map<string, number>();
  let total = 0;
  const add = (owner: string, bytes: number): void => {
    total += bytes;
    const rest = (held.get(owner) ?? 0) + bytes;
    if (rest === 0) held.delete(owner);
    else held.set(owner, rest);
  };
  const hold = (owner: string, bytes: number): Disposable => {
    add(owner, bytes);
    let released = false;
    return {
      [Symbol.dispose]: () => {
        if (!released) add(owner, -bytes);
        released = true;
      },
    };
  };
  return {
    hold,
    tryHold: (owner, bytes) => (total + bytes > limits.total || (held.get(owner) ?? 0) + bytes > limits.perOwner ? undefined : hold(owner, bytes)),
  };
}
