import { FatalError } from '@scheduling/runtime';
import type { MigrationSet } from './migration-set.ts';

/**
 * Names begin with a number of four digits that rises from one migration to the next. The first migrations have a date
 * in its place, and come before all numbers. Databases have run more of those than there are: see {@link isDated}.
 *
 * @throws FatalError for a name without a number, or whose number is not above the one before it
 */
export function requireOrder(sets: readonly MigrationSet[]): void {
  for (const { name: set, migrations } of sets) {
    let previous: string | undefined;
    for (const name of Object.keys(migrations)) {
      if (!/^\d{4}-./.test(name)) throw new FatalError(`${set}/${name} must have a name such as 0016-what`);
      if (previous !== undefined) requireAfter(set, name, previous);
      previous = name;
    }
  }
}

/**
 * The migrations that have not run, in their order. A new one comes after those that have run, also after those of
 * another version, so that the order is the same in every database.
 *
 * @throws FatalError if it does not
 */
export function pendingMigrations({ name: set, migrations }: MigrationSet, executed: ReadonlySet<string>): string[] {
  const pending = Object.keys(migrations).filter((name) => !executed.has(name));
  const [first] = pending;
  if (first !== undefined) for (const name of executed) requireAfter(set, first, name);
  return pending;
}

function requireAfter(set: string, name: string, earlier: string): void {
  const [number, lower] = [numberOf(name), numberOf(earlier)];
  const isAfter = number === lower && isDated(name) ? name > earlier : number > lower;
  if (!isAfter) throw new FatalError(`${set}/${name} must have a higher number than ${earlier}`);
}

function numberOf(name: string): number {
  return isDated(name) ? 0 : Number(name.slice(0, 4));
}

/**
 * From before numbers. One that the code does not have is part of the first one of its set today, and not of a newer
 * version.
 */
export function isDated(name: string): boolean {
  return /^\d{4}-\d\d-\d\d-/.test(name);
}
