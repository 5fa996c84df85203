import { collectFieldErrors } from '@scheduling/errors';
import type { ProviderKey } from '@scheduling/service';
import type { Conflicts } from '../appointment/conflicts.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { checkHours } from './check-hours.ts';
import type { Hours } from '../db/schema.ts';
import { writeHours } from './write-hours.ts';
import { replaceHours } from './replace-hours.ts';

/** So many resources of a request can have the same hours. */
const maxResources = 20;

export interface SetHours {
  /** Objects of the REST interface, as JSON, in the order of the resources. */
  hours: string[];
  conflicts: Conflicts;
}

/**
 * Sets the hours of some resources, all or none, and makes their timeslots (interface 14). Repeated, it changes
 * nothing. Rejects with `hours.invalid`, `provider.not_found`, or with `service.unavailable` if the provider does not
 * stop changing.
 */
export async function putHours(
  dependencies: CalendarDependencies,
  { resourceReferences, hours, ...key }: ProviderKey & { resourceReferences: string[]; hours: Hours },
): Promise<SetHours> {
  checkResources(resourceReferences);
  checkHours(hours);
  const { conflicts, madeUntil } = await replaceHours(dependencies, key, resourceReferences, hours);
  return { hours: resourceReferences.map((resource) => writeHours(resource, hours, madeUntil)), conflicts };
}

function checkResources(references: string[]): void {
  const errors = collectFieldErrors();
  if (references.length < 1 || references.length > maxResources)
    errors.add('/resourceReferences', `must be 1 to ${maxResources}`);
  if (new Set(references).size < references.length) errors.add('/resourceReferences', 'must be different');
  errors.throwIfAny('hours.invalid');
}
