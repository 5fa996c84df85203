import type { Service } from '@scheduling/stack';
import type { Random } from '@scheduling/testing/random';
import type { System } from '../system/start-system.ts';

/** A part of the system that can break. */
export type Part = Service | 'postgres' | 'nats' | 'mail';

/** A kind of fault, of systems of a kind. */
export interface Fault<Broken extends System = System> {
  /** `F1`; never given to another kind. */
  id: string;
  name: string;
  /**
   * Chooses what happens. All of a plan is chosen before the first fault happens, so that a seed always gives the same.
   */
  prepare(random: Random, limits: Limits): Injection<Broken>;
}

/** One fault, ready to happen. */
export interface Injection<Broken extends System = System> {
  /** For the report: `SIGKILL of calendar`. */
  what: string;
  /** What it breaks. */
  parts: readonly Part[];
  /** About how long it takes, in milliseconds. */
  lastsMs: number;
  /**
   * Breaks something, and resolves when it is whole again as far as the harness is concerned. False if it could not be
   * done.
   *
   * @param accepting called when bookings have to be possible again
   */
  run(system: Broken, accepting: () => void): Promise<boolean | void>;
}

/** What depends on how long the run is. */
export interface Limits {
  /** No fault lasts longer, so that there are others in a short run. */
  longestMs: number;
}

/** For what another fault may prevent. */
export function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  );
}
