import { DomainError } from '@scheduling/errors';
import type { ProviderKey } from '@scheduling/service';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { writeHours } from './write-hours.ts';

export interface HoursKey extends ProviderKey {
  resourceReference: string;
}

/** An object of the REST interface, as JSON. Rejects with `hours.not_found` or `provider.not_found`. */
export async function getHours(
  dependencies: CalendarDependencies,
  { resourceReference, ...key }: HoursKey,
): Promise<string> {
  const { id: providerId } = await requireProvider(dependencies, key);
  const { content, madeUntil } = await dependencies.database.kysely
    .selectFrom('resourceHours')
    .select(['content', 'madeUntil'])
    .where('crmId', '=', key.crmId)
    .where('providerId', '=', providerId)
    .where('resourceReference', '=', resourceReference)
    .executeTakeFirstOrThrow(() => new DomainError('hours.not_found'));
  return writeHours(resourceReference, content, madeUntil);
}
