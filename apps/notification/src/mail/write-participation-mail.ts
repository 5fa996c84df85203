import type {
  GetParticipationMailDataResponse,
  IssueParticipationLinkRequest,
} from '@scheduling/contracts/calendar/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import type { NotificationDependencies } from '../dependencies.ts';
import { composeParticipationMail, type Recipient } from './compose-participation-mail.ts';
import { findOrganizers } from './find-organizers.ts';
import { organizerOf, senderOf } from './mail-addresses.ts';
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
  mailData: GetParticipationMailDataResponse;
}

/**
 * Writes a mail about a change of a participation from the present data of its customer, provider and CRM. Undefined
 * when there is no address, or no longer a customer.
 */
export async function writeParticipationMail(
  dependencies: NotificationDependencies,
  { crmId, participationId, version, mail, actor, mailData }: ChangeMail,
): Promise<Omit<MailIntent, 'eventId'> | undefined> {
  const { database, findSenders, senderAddress, pageUrl } = dependencies;
  const { customerId = participationId, providerId } = mailData;
  const { template, calendar: calendarMethod } = mail;
  const [recipient, senders, organizers] = await Promise.all([
    findRecipient(dependencies, crmId, mailData),
    findSenders(crmId, providerId),
    findOrganizers(database, crmId, calendarMethod === undefined ? [] : [participationId]),
  ]);
  if (recipient === undefined) return undefined;
  const { provider, crm } = senders;
  const link = mailData.selfService
    ? await issueLink(dependencies, { crmId, participationId, email: recipient.email })
    : undefined;
  const organizer = organizerOf(provider, senderOf(crm, senderAddress), {
    attendeeAddress: recipient.email,
    known: organizers.get(participationId),
  });
  const content = composeParticipationMail({
    participationId,
    version,
    mail,
    actor,
    recipient,
    mailData,
    provider,
    crm,
    senderAddress,
    organizer,
    link,
    page: mailData.hasPublicPage ? `${pageUrl}/book/${providerId}` : undefined,
    writtenAt: new Date(),
  });
  const event =
    calendarMethod === 'REQUEST' ? { organizer: { address: organizer.address, eventEnd: mailData.end! } } : {};
  return {
    crmId,
    aboutId: participationId,
    version,
    toldVersion: mailData.currentVersion,
    template,
    customerId,
    providerId,
    actor,
    calendarMethod,
    ...event,
    content,
    sandbox: crm.sandbox,
  };
}

/**
 * A customer's name and address are those that the customer service has: what calendar knows of them may have been
 * replaced. Undefined without an address.
 */
async function findRecipient(
  { customers }: NotificationDependencies,
  crmId: string,
  { customerId, name = '', email }: GetParticipationMailDataResponse,
): Promise<Recipient | undefined> {
  if (customerId === undefined) return email === undefined ? undefined : { name, email };
  const recipient = await undefinedIfNotFound(customers.getRecipient({ crmId, customerId }));
  return recipient?.email === undefined ? undefined : { ...recipient, email: recipient.email };
}

/** The link to the booking, which works as long as the person has the address to which the mail goes. */
async function issueLink(
  { participations, pageUrl }: NotificationDependencies,
  request: IssueParticipationLinkRequest,
): Promise<string> {
  const { token } = await participations.issueParticipationLink(request);
  return `${pageUrl}/booking/${token}`;
}
