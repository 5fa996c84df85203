import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import type { BlocksKey } from './block.ts';

/** Opens the period again. Rejects with `block.not_found` or `provider.not_found`. */
export async function deleteBlock(
  dependencies: CalendarDependencies,
  { blockReference, ...key }: BlocksKey & { blockReference: string },
): Promise<void> {
  const { id: providerId } = await requireProvider(dependencies, key);
  const { numDeletedRows } = await dependencies.database.kysely
    .deleteFrom('resourceBlock')
    .where('crmId', '=', key.crmId)
    .where('providerId', '=', providerId)
    .where('resourceReference', '=', key.resourceReference)
    .where('reference', '=', blockReference)
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new DomainError('block.not_found');
}
