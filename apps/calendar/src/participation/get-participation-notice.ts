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
  /** The text that the caller gave with this version. */
  message: string | null;
  /** Of the customer, when one is known. */
  language: string | null;
  /** Null for a participant who was embedded in the creation of the appointment. */
  customerId: string | null;
}

/** Everything a mail about one version of a participation needs; the appointment comes without participations. Rejects with `participation.not_found` once it is gone. */
export async function getParticipationNotice(
  { database, archiveAfterDays }: CalendarDependencies,
  { crmId, participationId, version }: NoticeKey,
): Promise<ParticipationNotice> {
  if (!isUuid(participationId)) throw new DomainError('participation.not_found');
  const db = database.kysely;
  const { appointment_id: appointmentId, customer_id: customerId, language, message, ...participation } = await selectParticipations(db)
    .leftJoin('participation_message', (join) =>
      join
        .onRef('participation_message.crm_id', '=', 'participation.crm_id')
        .onRef('participation_message.participation_id', '=', 'participation.id')
        .on('participation_message.version', '=', version),
    )
    .select(['participation.appointment_id', 'participation.customer_id', 'customer.language', 'participation_message.text as message'])
    .where('participation.crm_id', '=', crmId)
    .where('participation.id', '=', participationId)
    .where(isNotOver)
    .executeTakeFirstOrThrow(() => new DomainError('participation.not_found'));
  const row = await selectAppointments(db, archiveAfterDays)
    .where('crm_id', '=', crmId)
    .where('id', '=', appointmentId)
    .executeTakeFirstOrThrow(() => new DomainError('participation.not_found'));
  // The other participants are nobody's business in a mail.
  return { participation, appointment: { row, participations: [] }, providerId: row.provider_id, message, language, customerId };
}
