import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { findParticipation } from './move-participation.ts';
import type { ParticipationRecord } from './participation.ts';

export interface ParticipationKey {
  crmId: string;
  providerReference: string;
  participationReference: string;
}

/** Rejects with `participation.not_found`, also for an expired reservation, or `provider.not_found`. */
export async function getParticipation(
  dependencies: CalendarDependencies,
  key: ParticipationKey,
): Promise<ParticipationRecord> {
  const { crmId, providerReference, participationReference: reference } = key;
  const found = await findParticipation(dependencies.database.kysely, { crmId, providerReference, reference });
  if (found !== undefined && !found.expired) return found;
  await requireProvider(dependencies, key);
  throw new DomainError('participation.not_found');
}
