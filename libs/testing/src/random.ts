import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Chance that is the same for the same seed. */
export interface Random {
  /** An integer from `from` to `to`, both included. */
  integer(from: number, to: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

/**
 * @param stream independent streams have different numbers, so what one draws does not depend on how much another has
 *   drawn
 */
export function createRandom(seed: number, stream: number): Random {
  const generator = xoroshiro128plus(seed);
  for (let number = 0; number < stream; number += 1) generator.jump?.();
  const integer = (from: number, to: number): number => uniformInt(generator, from, to);
  const pick = <T>(items: readonly T[]): T => items[integer(0, items.length - 1)]!;
  return {
    integer,
    chance: (probability) => integer(1, 1_000_000) <= probability * 1_000_000,
    pick,
    shuffled: <T>(items: readonly T[]) => {
      const left = [...items];
      return items.map(() => left.splice(integer(0, left.length - 1), 1)[0]!);
    },
  };
}
