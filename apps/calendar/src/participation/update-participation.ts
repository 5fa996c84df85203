import { DomainError } from '@scheduling/errors';
import { runOnce } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type MovableParticipation, moveParticipation, type RequestedMove, selectMovableParticipations } from './move-participation.ts';
import { requireParticipation, type ParticipationRecord } from './participation.ts';

export interface ParticipationUpdate extends RequestedMove {
  crmId: string;
  providerReference: string;
  participationReference: string;
}

/** Update participation (interface 4.3). Rejects like {@link moveParticipation}, and with `provider.not_found`. */
export async function updateParticipation(dependencies: CalendarDependencies, request: ParticipationUpdate): Promise<ParticipationRecord> {
  const { crmId } = request;
  const participation = await runOnce(dependencies.database, crmId, {
    work: async (db) => {
      const present = await findMovable(db, request);
      return present && moveParticipation(db, dependencies.bookings, present, request);
    },
    keep: (moved) => moved && { resourceIds: [moved.id], created: false },
    replay: (db, { resourceIds }) => requireParticipation(db, { crmId, id: resourceIds[0]! }),
  });
  if (participation !== undefined) return participation;
  await requireProvider(dependencies, request);
  throw new DomainError('participation.not_found');
}

function findMovable(db: Kysely<CalendarSchema>, request: ParticipationUpdate): Promise<MovableParticipation | undefined> {
  return selectMovableParticipations(db)
    .innerJoin('provider', (join) =>
      join.onRef('provider.crmId', '=', 'appointment.crmId').onRef('provider.id', '=', 'appointment.providerId'),
    )
    .where('participation.crmId', '=', request.crmId)
    .where('participation.reference', '=', request.participationReference)
    .where('provider.reference', '=', request.providerReference)
    .executeTakeFirst();
}
