import { DomainError } from '@scheduling/errors';
import { runOnce } from '@scheduling/postgres';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { findParticipation, moveParticipation, type RequestedMove } from './move-participation.ts';
import { requireParticipation, type ParticipationRecord } from './participation.ts';

export interface ParticipationUpdate extends RequestedMove {
  crmId: string;
  providerReference: string;
  participationReference: string;
}

/** Update participation (interface 4.3). Rejects like {@link moveParticipation}, and with `provider.not_found`. */
export async function updateParticipation(
  dependencies: CalendarDependencies,
  request: ParticipationUpdate,
): Promise<ParticipationRecord> {
  const { crmId } = request;
  const participation = await runOnce(dependencies.database, crmId, {
    work: async (db): Promise<ParticipationRecord | undefined> => {
      const present = await findParticipation(db, {
        crmId,
        reference: request.participationReference,
        providerReference: request.providerReference,
      });
      return present && moveParticipation(db, dependencies.bookings, present, request);
    },
    keep: (moved) => moved && { resourceIds: [moved.id], created: false },
    replay: (db, { resourceIds }) => requireParticipation(db, { crmId, id: resourceIds[0]! }),
  });
  if (participation !== undefined) return participation;
  await requireProvider(dependencies, request);
  throw new DomainError('participation.not_found');
}
