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
  const link = await issueDecisionLink(dependencies, row, recipient);
  const isCurrent = told.mailData.currentVersion <= row.participationVersion;
  const saysBefore =
    isCurrent && template !== 'provider-request-waiting' && (await wasLastMailCurrent(dependencies, row));
  const mailData = saysBefore ? told.mailData : { ...told.mailData, previous: undefined };
  const content = composeProviderMail({
    template,
    actor,
    recipient,
    person: told.person,
    mailData,
    link,
    provider,
    crm,
    senderAddress,
    writtenAt: new Date(),
  });
  const toldVersion = isCurrent ? undefined : row.version + 1;
  return { ...intentOf(row, recipient, { content, sandbox: crm.sandbox }), toldVersion };
}

/**
 * Whether the last mail to this recipient about the same thing has arrived, and said what was true right after its
 * change. Otherwise what was true before this one is nothing that the recipient was told.
 */
async function wasLastMailCurrent(
  { database: { kysely } }: NotificationDependencies,
  { crmId, aboutId, version }: ProviderNoticeRow,
): Promise<boolean> {
  const last = await kysely
    .selectFrom('mail')
    .select(['state', 'toldVersion'])
    .where('crmId', '=', crmId)
    .where('aboutId', '=', aboutId)
    .where('version', '<', version)
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last === undefined || (last.state === 'sent' && last.toldVersion === null);
}

/** What a mail to a provider or an entry of a list is about. */
export interface Told {
  mailData: GetParticipationMailDataResponse;
  /** Undefined if it is about a whole appointment. */
  person: Person | undefined;
}

/** Undefined if there is no such booking or person any more, or nothing left to decide about a request. */
export async function readTold(
  dependencies: NotificationDependencies,
  row: ProviderNoticeRow,
): Promise<Told | undefined> {
  const mailData = await readMailData(dependencies, row);
  if (mailData === undefined) return undefined;
  const { template, crmId } = row;
  if (isAboutAppointment(template)) return { mailData, person: undefined };
  if (isAboutRequest(template) && mailData.state !== ParticipationState.REQUESTED) return undefined;
  if (template === 'provider-request-waiting' && !isAsReminded(row, mailData)) return undefined;
  const { customerId, name = '', email, mobile, note } = mailData;
  if (customerId === undefined) return { mailData, person: { name, email, mobile, note } };
  const person = await undefinedIfNotFound(dependencies.customers.getRecipient({ crmId, customerId }));
  // What they wrote about this booking, or else what the CRM has noted about them.
  return person && { mailData, person: { ...person, note: note ?? person.note } };
}

/** Whether a request is for the same time as when the reminder was due, and has not begun: until then it can be cancelled. */
function isAsReminded(
  { requestedStartsAt }: ProviderNoticeRow,
  { start, cancellableUntil }: GetParticipationMailDataResponse,
): boolean {
  return start!.getTime() === requestedStartsAt!.getTime() && cancellableUntil !== undefined;
}

/** By the first of its participations that still exists. */
async function readMailData(
  { participations }: NotificationDependencies,
  { crmId, participationIds, participationVersion: version }: ProviderNoticeRow,
): Promise<GetParticipationMailDataResponse | undefined> {
  for (const participationId of participationIds) {
    const request = { crmId, participationId, version };
    const mailData = await undefinedIfNotFound(participations.getParticipationMailData(request));
    if (mailData !== undefined) return mailData;
  }
  return undefined;
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
  { crmId, eventId, aboutId, version, template, customerId, providerId, actor }: ProviderNoticeRow,
  { userId }: ProviderRecipient,
  { content, sandbox }: Pick<MailIntent, 'content' | 'sandbox'>,
): MailIntent {
  return {
    crmId,
    eventId,
    aboutId,
    version,
    template,
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
  { crmId, participationIds, template }: Pick<ProviderNoticeRow, 'crmId' | 'participationIds' | 'template'>,
  { id: recipientId, email }: ProviderRecipient,
): Promise<string | undefined> {
  if (!isAboutRequest(template)) return undefined;
  const link = { crmId, participationId: participationIds[0]!, recipientId, email };
  const { token } = await participations.issueDecisionLink(link);
  return `${pageUrl}/decide/${token}`;
}
