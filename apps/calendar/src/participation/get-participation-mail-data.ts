import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import type { Location, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

export interface MailDataKey {
  crmId: string;
  participationId: string;
  version: number;
  /** Of which the person knows the time, place and title, if the caller knows it. */
  toldVersion?: number | undefined;
}

/** What an appointment was before a change. */
export interface PreviousAppointment {
  startsAt: string;
  endsAt: string;
  description: string | null;
  address: Location | null;
}

/** See read-participation-mail-data.sql. */
export interface ParticipationMailData {
  /**
   * What everything but the message is about: later than the requested version if the participation has changed since.
   */
  currentVersion: number;
  reference: string;
  state: ParticipationState;
  /** The text that the caller sent with this version. */
  message: string | null;
  /** Null for a participant embedded in the creation of the appointment, who has a name and perhaps an address here. */
  customerId: string | null;
  name: string | null;
  email: string | null;
  mobile: string | null;
  note: string | null;
  providerId: string;
  /** Of the appointment. */
  contactReference: string | null;
  description: string | null;
  startsAt: string;
  endsAt: string;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
  /** What the person was told before the mail about the requested version; null if that is not known. */
  previous: PreviousAppointment | null;
  /** Whether the mail has the person's link. */
  selfService: boolean;
  /** Whether everybody can book on a page of the provider. */
  hasPublicPage: boolean;
  /** Until when the person can cancel by it; null: no longer. */
  cancellableUntil: string | null;
  /** The same for moving it. */
  movableUntil: string | null;
}

/**
 * What a mail about one version of a participation needs; nothing of the other participants. Rejects with
 * `participation.not_found` once it is deleted.
 */
export async function getParticipationMailData(
  { database }: CalendarDependencies,
  request: MailDataKey,
): Promise<ParticipationMailData> {
  if (!isUuid(request.participationId)) throw new DomainError('participation.not_found');
  const call = { name: 'read_participation_mail_data', request };
  const mailData = await callFunction<ParticipationMailData | null>(database.kysely, call);
  if (mailData === null) throw new DomainError('participation.not_found');
  return mailData;
}
