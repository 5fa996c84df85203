import type {
  BookingVerificationRequested,
  CustomerErasureRequested,
  EmailVerificationRequested,
  ParticipationChanged,
  ParticipationReminderDue,
  ParticipationUndecided,
  ProviderDeleted,
} from '@scheduling/contracts/events/v1';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { type Effect, type Subscription, subscriptions } from '@scheduling/messaging';
import { nameUuid } from '@scheduling/runtime';
import type { NotificationSchema } from './db/schema.ts';
import type { NotificationDependencies } from './dependencies.ts';
import { countAddressErasures, requireNoAddressErasure } from './erasure/address-erasures.ts';
import { eraseMailsTo } from './erasure/erase-address.ts';
import { concludeErasure, eraseMails } from './erasure/erase-customer.ts';
import { eraseMailsOfProvider } from './erasure/erase-provider.ts';
import { eraseUser } from './erasure/erase-user.ts';
import { composePageMail } from './mail/compose-page-mail.ts';
import { composeRemovalMail } from './mail/compose-removal-mail.ts';
import { composeVerificationMail } from './mail/compose-verification-mail.ts';
import { findOrganizers } from './mail/find-organizers.ts';
import { organizerOf, senderOf } from './mail/mail-addresses.ts';
import { mailOfChange } from './mail/mail-of-change.ts';
import { isStored, type LastMailIntent, storeMail } from './mail/store-mail.ts';
import { providerNoticesOf, providerNoticesOfWaiting } from './provider-mail/provider-mail-of-change.ts';
import { storeDailyNotice } from './provider-mail/store-daily-notice.ts';
import { storeMailsOfChange } from './provider-mail/store-mails-of-change.ts';
import { storeUnwrittenMail } from './mail/store-unwritten-mail.ts';

/** Which events create mails, and which delete them. */
export function notificationSubscriptions(dependencies: NotificationDependencies): Subscription<NotificationSchema>[] {
  return subscriptions<NotificationSchema, 'notification'>({
    participationChanged: (change, { eventId }) => mailAboutChange(change, eventId),
    participationReminderDue: async (reminder) => remind(reminder),
    participationUndecided: async (request) => remindOfRequest(request),
    emailVerificationRequested: (request, { eventId }) => mailForVerification(dependencies, request, eventId),
    userDeleted: async (user) => (tx) => eraseUser(tx, user),
    providerDeleted: (provider) => eraseProvider(dependencies, provider),
    customerErasureRequested: (request) => eraseCustomer(dependencies, request),
    dailyListDue: async (list) => storeDailyNotice(list),
    bookingVerificationRequested: (request) => mailAboutPageBooking(dependencies, request),
  });
}

/**
 * The mail is written later (write-mails.ts), in a turn of its CRM. So the events of one CRM hardly delay those of
 * others.
 */
async function mailAboutChange(
  change: ParticipationChanged,
  eventId: string,
): Promise<Effect<NotificationSchema> | undefined> {
  const {
    crmId,
    participationId,
    version,
    customerId,
    providerId,
    actor,
    previousMailEventId: previousEventId,
  } = change;
  const mail = mailOfChange(change);
  // An effect all the same, because the next mail waits until this event has been processed.
  if (mail === undefined) return async () => undefined;
  const call = storeUnwrittenMail({
    crmId,
    eventId,
    participationId,
    version,
    mail,
    customerId,
    providerId,
    actor,
    previousEventId,
  });
  const notices = providerNoticesOf(change, eventId);
  return notices.length === 0 ? call : storeMailsOfChange(crmId, call, notices);
}

/**
 * Whatever event says that a reminder is due, it is the same mail: calendar may say so again after its database was
 * restored from a backup, or the clock of a sandbox was set back.
 */
function remind({
  crmId,
  participationId,
  version,
  customerId,
  providerId,
  start,
  minutes,
  expiresAt,
  previousMailEventId: previousEventId,
}: ParticipationReminderDue): Effect<NotificationSchema> {
  return storeUnwrittenMail({
    crmId,
    eventId: nameUuid(participationId, `${start} ${minutes}`),
    participationId,
    version,
    mail: { template: 'booking-reminder' },
    customerId,
    providerId,
    actor: 'service',
    previousEventId,
    reminder: { startsAt: start, expiresAt },
  });
}

/** As with a reminder, one request is one mail to each for one time. */
function remindOfRequest(request: ParticipationUndecided): Effect<NotificationSchema> {
  const { crmId, participationId, version, customerId, providerId, start, expiresAt, tellPerson } = request;
  const eventId = nameUuid(participationId, `undecided ${start}`);
  const call = tellPerson
    ? storeUnwrittenMail({
        crmId,
        eventId,
        participationId,
        version,
        mail: { template: 'request-unconfirmed' },
        customerId,
        providerId,
        actor: 'service',
        previousEventId: request.previousMailEventId,
        reminder: { requestedStartsAt: start, expiresAt },
      })
    : undefined;
  return storeMailsOfChange(crmId, call, providerNoticesOfWaiting(request, eventId));
}

/** Issuing a token invalidates those of earlier mails, so a redelivered event must not do it. */
async function mailForVerification(
  dependencies: NotificationDependencies,
  { crmId, verificationId }: EmailVerificationRequested,
  eventId: string,
): Promise<Effect<NotificationSchema> | undefined> {
  if (await isStored(dependencies.database, crmId, eventId)) return undefined;
  const verification = await undefinedIfNotFound(
    dependencies.identity.issueVerificationToken({ crmId, verificationId }),
  );
  if (verification === undefined) return undefined;
  const { crm } = await dependencies.identity.getCrm({ crmId });
  const content = composeVerificationMail({ verification, crm: crm!, ...dependencies });
  const { user, expiresAt } = verification;
  const intent = {
    crmId,
    eventId,
    aboutId: verificationId,
    version: 0,
    template: 'email-verification' as const,
    userId: user!.id,
    expiresAt,
    content,
    sandbox: crm!.sandbox,
  };
  return (tx) => storeMail(tx, intent);
}

/**
 * Whatever event asks for it, it is the same mail, also if it has to say something else by then. It is about no customer:
 * whoever has entered the address may not be its owner, so nothing is made of it before the owner confirms.
 */
async function mailAboutPageBooking(
  dependencies: NotificationDependencies,
  { crmId, pendingBookingId }: BookingVerificationRequested,
): Promise<Effect<NotificationSchema> | undefined> {
  const { database, bookingPages, findSenders, senderAddress, pageUrl } = dependencies;
  const eventId = nameUuid(pendingBookingId, 'verification');
  if (await isStored(database, crmId, eventId)) return undefined;
  const erasures = await countAddressErasures(database.kysely, crmId);
  const mailData = await undefinedIfNotFound(bookingPages.getPendingBookingMailData({ crmId, pendingBookingId }));
  if (mailData === undefined) return undefined;
  const { providerId, token, expiresAt } = mailData;
  const { provider, crm } = await findSenders(crmId, providerId);
  const content = composePageMail({ mailData, provider, crm, senderAddress, pageUrl, writtenAt: new Date() });
  const intent = {
    crmId,
    eventId,
    aboutId: pendingBookingId,
    version: 0,
    template: token === undefined ? ('booking-limit' as const) : ('booking-verification' as const),
    providerId,
    expiresAt,
    content,
    sandbox: crm.sandbox,
  };
  return async (tx) => {
    await requireNoAddressErasure(tx, crmId, erasures);
    await storeMail(tx, intent);
  };
}

/**
 * The person's mails are erased before the last ones are composed: the customer service may be down. While one of them
 * is being sent, the event waits, so that the last mails arrive after it.
 */
async function eraseCustomer(
  dependencies: NotificationDependencies,
  request: CustomerErasureRequested,
): Promise<Effect<NotificationSchema>> {
  if (request.byAddress) return eraseAddress(dependencies, request);
  if (await eraseMails(dependencies.database, request)) throw mailIsSent();
  const lastMails = request.notify ? await composeLastMails(dependencies, request) : [];
  return (tx) => concludeErasure(tx, request, lastMails);
}

/**
 * Everybody who is known with the address is erased separately. The address is no longer known once the erasure is
 * complete.
 */
async function eraseAddress(
  dependencies: NotificationDependencies,
  { crmId, erasureId }: CustomerErasureRequested,
): Promise<Effect<NotificationSchema>> {
  const answer = await undefinedIfNotFound(dependencies.erasures.getErasureAddress({ crmId, erasureId }));
  const { database } = dependencies;
  if (answer && (await database.transaction((tx) => eraseMailsTo(tx, crmId, answer.email)))) throw mailIsSent();
  return (tx) => concludeErasure(tx, { crmId, erasureId }, []);
}

/**
 * In transactions of its own: a provider may have had many mails. The event may be older than a restore of identity: a
 * provider that exists again keeps its mails.
 */
async function eraseProvider(
  { database, identity }: NotificationDependencies,
  { crmId, providerId }: ProviderDeleted,
): Promise<Effect<NotificationSchema>> {
  const found = await undefinedIfNotFound(identity.getProvider({ crmId, key: { $case: 'id', value: providerId } }));
  if (!found && !(await eraseMailsOfProvider(database, { crmId, providerId })))
    throw new DomainError('service.unavailable', { text: 'the provider has more mails to delete' });
  return async () => undefined;
}

function mailIsSent(): DomainError {
  return new DomainError('service.unavailable', { text: 'a mail to the person is being sent' });
}

/** One for each appointment that the person was removed from: a calendar program acts on one event of a mail. */
async function composeLastMails(
  dependencies: NotificationDependencies,
  { crmId, customerId, erasureId }: CustomerErasureRequested,
): Promise<LastMailIntent[]> {
  const answer = await undefinedIfNotFound(dependencies.erasures.getErasureNotice({ crmId, erasureId }));
  if (!answer?.email || answer.removed.length === 0) return [];
  const { removed: participations, ...notice } = answer;
  const { database, findSenders, senderAddress } = dependencies;
  const senders = await undefinedIfNotFound(findSenders(crmId, notice.providerId));
  // The provider was deleted: there is nobody whose mail it is.
  if (senders === undefined) return [];
  const { provider, crm } = senders;
  const organizers = await findOrganizers(
    database,
    crmId,
    participations.map(({ participationId }) => participationId),
  );
  const shared = { notice, provider, crm, senderAddress, writtenAt: new Date() };
  return participations.map((removed) => {
    const { participationId, version } = removed;
    const organizer = organizerOf(provider, senderOf(crm, senderAddress), {
      attendeeAddress: notice.email,
      known: organizers.get(participationId),
    });
    return {
      crmId,
      eventId: erasureId,
      aboutId: participationId,
      version,
      template: 'removed-by-deletion',
      customerId,
      providerId: notice.providerId,
      erasureId,
      expiresAt: notice.expiresAt!,
      content: composeRemovalMail({ ...shared, removed, organizer }),
      sandbox: crm.sandbox,
    };
  });
}
