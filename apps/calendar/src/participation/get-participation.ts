import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type Participation, readParticipation } from './read-participation.ts';

export interface ParticipationKey {
  crmId: string;
  providerReference: string;
  participationReference: string;
}

/** Rejects with `participation.not_found`, also for an expired reservation, or `provider.not_found`. */
export async function getParticipation(
  dependencies: CalendarDependencies,
  key: ParticipationKey,
): Promise<Participation> {
  const { crmId, participationReference: reference } = key;
  const { id: providerId } = await requireProvider(dependencies, key);
  const found = await readParticipation(dependencies.database.kysely, { crmId, providerId, reference });
  if (found === undefined) throw new DomainError('participation.not_found');
  return found;
}
