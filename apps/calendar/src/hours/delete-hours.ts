import type { Conflicts } from '../appointment/conflicts.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { HoursKey } from './get-hours.ts';
import { replaceHours } from './replace-hours.ts';

/**
 * Removes the hours of a resource, as if they were replaced by hours without windows, also if there are none (interface
 * 14): whoever repeats it learns of the conflicts, too. Rejects with `provider.not_found`, or with
 * `service.unavailable` if what it depends on does not stop changing.
 */
export async function deleteHours(
  dependencies: CalendarDependencies,
  { resourceReference, ...key }: HoursKey,
): Promise<Conflicts> {
  const { conflicts } = await replaceHours(dependencies, key, [resourceReference], undefined);
  return conflicts;
}
