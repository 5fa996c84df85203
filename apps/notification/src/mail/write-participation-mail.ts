import type { GetParticipationNoticeResponse } from '@scheduling/contracts/calendar/v1';
import type { NotificationDependencies } from '../dependencies.ts';
import { composeParticipationMail } from './compose-participation-mail.ts';
import type { MailOfChange } from './mail-of-change.ts';
import type { MailIntent } from './store-mail.ts';

/** A mail about a change of a participation. */
export interface ChangeMail {
  crmId: string;
  participationId: string;
  /** Of the participation, at the change. */
  version: number;
  mail: MailOfChange;
  /** Who caused the change, as events say it. */
  actor: string;
  notice: GetParticipationNoticeResponse;
}

/** Writes a mail about a change of a participation from the present data of its provider and CRM. Undefined when there is no address. */
export async function writeParticipationMail(
  { findSenders, senderAddress }: NotificationDependencies,
  { crmId, participationId, version, mail, actor, notice }: ChangeMail,
): Promise<Omit<MailIntent, 'eventId'> | undefined> {
  const { customerId = participationId, providerId } = notice;
  const senders = await findSenders(crmId, providerId);
  const content = composeParticipationMail({ participationId, version, mail, actor, notice, ...senders, senderAddress, writtenAt: new Date() });
  if (content === undefined) return undefined;
  const { template, calendar: calendarMethod } = mail;
  return { crmId, aboutId: participationId, version, template, customerId, providerId, actor, calendarMethod, content, sandbox: senders.crm.sandbox };
}
