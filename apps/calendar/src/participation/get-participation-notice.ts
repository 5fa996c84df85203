import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { type AppointmentRecord, selectAppointments } from '../appointment/appointment.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { isNotOver, type ParticipationRecord, selectParticipations } from './participation.ts';

export interface NoticeKey {
  crmId: string;
  participationId: string;
  version: number;
}

export interface ParticipationNotice {
  participation: ParticipationRecord;
  appointment: AppointmentRecord;
  providerId: string;
  /** The text that the caller sent with this version. */
  message: string | null;
  /** The customer's, if there is one. */
  language: string | null;
  /** Null for a participant embedded in the creation of the appointment. */
  customerId: string | null;
}

/**
 * Everything a mail about one version of a participation needs; the appointment has no participations. Rejects with `participation.not_found`
 * once it is deleted.
 */
export async function getParticipationNotice(
  { database, archiveAfterDays }: CalendarDependencies,
  { crmId, participationId, version }: NoticeKey,
): Promise<ParticipationNotice> {
  if (!isUuid(participationId)) throw new DomainError('participation.not_found');
  const db = database.kysely;
  const { appointmentId, customerId, language, message, ...participation } = await selectParticipations(db)
    .leftJoin('participationMessage', (join) =>
      join
        .onRef('participationMessage.crmId', '=', 'participation.crmId')
        .onRef('participationMessage.participationId', '=', 'participation.id')
        .on('participationMessage.version', '=', version),
    )
    .select(['participation.appointmentId', 'participation.customerId', 'customer.language', 'participationMessage.text as message'])
    .where('participation.crmId', '=', crmId)
    .where('participation.id', '=', participationId)
    .where(isNotOver)
    .executeTakeFirstOrThrow(() => new DomainError('participation.not_found'));
  const row = await selectAppointments(db, archiveAfterDays)
    .where('crmId', '=', crmId)
    .where('id', '=', appointmentId)
    .executeTakeFirstOrThrow(() => new DomainError('participation.not_found'));
  // A mail must not reveal the other participants.
  return { participation, appointment: { row, participations: [] }, providerId: row.providerId, message, language, customerId };
}
