import { type GetParticipationMailDataResponse, ParticipationState } from '@scheduling/contracts/calendar/v1';
import type { ProviderRecipient } from '@scheduling/contracts/identity/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailIntent } from '../mail/store-mail.ts';
import { composeProviderMail, type Person } from './compose-provider-mail.ts';
import { isAboutAppointment, isAboutRequest } from './provider-mail-of-change.ts';
import type { ProviderNoticeRow } from './provider-notice-table.ts';

/**
 * Writes a mail to one of a provider's recipients, from the present data. Undefined if there is no such recipient, or
 * no longer a person or a booking.
 */
export async function writeProviderMail(
  dependencies: NotificationDependencies,
  row: ProviderNoticeRow,
): Promise<MailIntent | undefined> {
  const { crmId, providerId, template, actor } = row;
  const told = await readTold(dependencies, row);
  if (told === undefined) return undefined;
  const [recipient, { provider, crm }] = await Promise.all([
    findProviderRecipient(dependencies, row, told.mailData.contactReference),
    dependencies.findSenders(crmId, providerId),
  ]);
  if (recipient === undefined) return undefined;
  const { senderAddress } = dependencies;
  const link = await issueDecisionLink(dependencies, row, recipient, told);
  const content = composeProviderMail({ template, actor, recipient, ...told, link, provider, crm, senderAddress });
  return intentOf(row, recipient, { content, sandbox: crm.sandbox });
}

/** What a mail to a provider or an entry of a list is about. */
export interface Told {
  mailData: GetParticipationMailDataResponse;
  /** Undefined if it is about a whole appointment. */
  person: Person | undefined;
}

/** Undefined if there is no such booking or person any more. */
export async function readTold(
  { participations, customers }: NotificationDependencies,
  { crmId, participationId, version, template }: ProviderNoticeRow,
): Promise<Told | undefined> {
  const mailData = await undefinedIfNotFound(
    participations.getParticipationMailData({ crmId, participationId: participationId!, version }),
  );
  if (mailData === undefined) return undefined;
  if (isAboutAppointment(template)) return { mailData, person: undefined };
  const { customerId, name = '', email, mobile, note } = mailData;
  if (customerId === undefined) return { mailData, person: { name, email, mobile, note } };
  const person = await undefinedIfNotFound(customers.getRecipient({ crmId, customerId }));
  return person && { mailData, person };
}

/** Undefined if the provider has no such recipient. */
export async function findProviderRecipient(
  { identity }: NotificationDependencies,
  { crmId, providerId, recipient }: Pick<ProviderNoticeRow, 'crmId' | 'providerId' | 'recipient'>,
  contactReference: string | undefined,
): Promise<ProviderRecipient | undefined> {
  const isContact = recipient === 'CONTACT';
  if (isContact && contactReference === undefined) return undefined;
  const { recipients } = await identity.listProviderRecipients({
    crmId,
    providerId,
    contactReference: isContact ? contactReference : undefined,
  });
  return recipients.find(({ contact }) => contact === isContact);
}

export function intentOf(
  { crmId, eventId, aboutId, version, template, participationId, customerId, providerId, actor }: ProviderNoticeRow,
  { userId }: ProviderRecipient,
  { content, sandbox }: Pick<MailIntent, 'content' | 'sandbox'>,
): MailIntent {
  return {
    crmId,
    eventId,
    aboutId,
    version,
    template,
    participationId: participationId ?? undefined,
    customerId: customerId ?? undefined,
    userId,
    providerId,
    actor,
    content,
    sandbox,
  };
}

/** By which this recipient decides the request, as long as it waits and the recipient has this address and access. */
export async function issueDecisionLink(
  { participations, pageUrl }: NotificationDependencies,
  { crmId, participationId, template }: Pick<ProviderNoticeRow, 'crmId' | 'participationId' | 'template'>,
  { id: recipientId, email }: ProviderRecipient,
  { mailData: { state } }: Told,
): Promise<string | undefined> {
  if (!isAboutRequest(template) || state !== ParticipationState.REQUESTED) return undefined;
  const link = { crmId, participationId: participationId!, recipientId, email };
  const { token } = await participations.issueDecisionLink(link);
  return `${pageUrl}/decide/${token}`;
}
