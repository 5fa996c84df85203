import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
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
  const remembered = providers.get(key);
  const read = ({ id: providerId }: ProviderRow) =>
    readParticipation(database.kysely, { crmId, providerId, reference });
  // One that was deleted has no participations. Another one may have its reference since.
  const found = (remembered && (await read(remembered))) ?? (await read(await providers.refresh(key)));
  if (found === undefined) throw new DomainError('participation.not_found');
  return found;
}
