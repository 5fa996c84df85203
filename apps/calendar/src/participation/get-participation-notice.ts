import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import type { CalendarDependencies } from '../dependencies.ts';
import type { DescribedAppointment } from '../described-appointment.ts';
import { parseRecord, type ParticipationRecord, type WrittenRecord } from './participation.ts';

export interface NoticeKey {
  crmId: string;
  participationId: string;
  version: number;
}

export interface ParticipationNotice {
  participation: ParticipationRecord;
  appointment: DescribedAppointment;
  /** The text that the caller sent with this version. */
  message: string | null;
  /** The customer's, if there is one. */
  language: string | null;
  /** Null for a participant embedded in the creation of the appointment. */
  customerId: string | null;
  /**
   * What everything but the message is about: later than the requested version if the participation has changed since.
   */
  currentVersion: number;
}

/** See read-participation-notice.sql. */
interface Notice extends Omit<ParticipationNotice, 'participation' | 'appointment'> {
  participation: WrittenRecord;
  appointment: Omit<DescribedAppointment, 'startsAt' | 'endsAt'> & { startsAt: string; endsAt: string };
}

/**
 * Everything a mail about one version of a participation needs; the appointment has no participations, because a mail
 * must not reveal the others. Rejects with `participation.not_found` once it is deleted.
 */
export async function getParticipationNotice(
  { database, archiveAfterDays }: CalendarDependencies,
  key: NoticeKey,
): Promise<ParticipationNotice> {
  if (!isUuid(key.participationId)) throw new DomainError('participation.not_found');
  const request = { ...key, archiveAfterDays };
  const notice = await callFunction<Notice | null>(database.kysely, {
    name: 'read_participation_notice',
    request,
    locks: '',
  });
  if (notice === null) throw new DomainError('participation.not_found');
  const { participation, appointment } = notice;
  return {
    ...notice,
    participation: parseRecord(participation),
    appointment: { ...appointment, startsAt: new Date(appointment.startsAt), endsAt: new Date(appointment.endsAt) },
  };
}
