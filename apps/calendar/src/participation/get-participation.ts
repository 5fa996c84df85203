import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
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
  const { providers, database } = dependencies;
  // Its id never changes.
  const { id: providerId } = providers.get(key) ?? (await providers.refresh(key));
  const found = await readParticipation(database.kysely, { crmId, providerId, reference });
  if (found === undefined) throw new DomainError('participation.not_found');
  return found;
}
