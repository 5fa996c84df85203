import type { GetPendingBookingMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import {
  contactOf,
  formatMoment,
  formatPrice,
  formatStart,
  shorten,
  singleLine,
  titleOf,
  withoutHosts,
} from '@scheduling/presentation';
import type { MailAddress, MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import type { MailTexts, Texts } from '../language/texts.ts';
import { automaticOf, brandOf, imprintsOf } from './brand.ts';
import { describeAppointment } from './describe-appointment.ts';
import { describeAdvice } from './describe-link.ts';
import { type MailParts, renderHtml, renderText } from './layout.ts';
import { namedProvider, replyAddressOf, senderForProvider } from './mail-addresses.ts';
import { withoutLinks } from './remove-links.ts';

export interface PageMail {
  mailData: GetPendingBookingMailDataResponse;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  /** Without a trailing slash. */
  pageUrl: string;
  writtenAt: Date;
}

/**
 * The mail to somebody who has booked on a page, with the link by which that becomes a booking, or that it cannot become
 * one.
 */
export function composePageMail(given: PageMail): MailContent {
  const { mailData } = given;
  const request = { ...given, provider: namedProvider(given.provider, given.crm) };
  const { provider, crm, senderAddress } = request;
  const language = chooseLanguage(mailData.language, crm.language);
  const to = recipientOf(mailData);
  const parts = mailData.token === undefined ? limitOf(request, to, language) : verificationOf(request, to, language);
  return {
    from: senderForProvider(provider, crm, senderAddress),
    replyTo: replyAddressOf(provider),
    to,
    language: language.locale,
    subject: parts.subject,
    text: renderText(parts),
    html: renderHtml(parts),
    calendars: [],
  };
}

/** Long enough for names, and too short for what somebody wants to say to the owners of other addresses. */
const maxNameLength = 60;

/** Nobody has confirmed the address, so what is sent to it must not be what a stranger wants to say. */
function recipientOf({ name, email }: GetPendingBookingMailDataResponse): MailAddress {
  return { name: shorten(withoutHosts(singleLine(name)), maxNameLength), address: email };
}

function verificationOf(request: PageMail, to: MailAddress, language: Language): MailParts {
  const { mailData, provider, pageUrl } = request;
  const { texts, locale } = language;
  const { page } = texts;
  const mail = mailData.requested ? page.requests['booking-verification'] : texts.mails['booking-verification'];
  const until = page.until(formatMoment(mailData.expiresAt!, provider.timeZone, locale));
  const price = mailData.price?.value ? formatPrice(mailData.price, locale) : undefined;
  const details = price === undefined ? [] : [{ label: texts.labels.price, value: price }];
  return {
    ...sharedOf(request, to, language, mail),
    tone: 'waiting',
    appointment: describeAppointment(mailData, provider, locale, { details }),
    action: {
      label: mailData.requested ? page.confirm.request : page.confirm.booking,
      url: `${pageUrl}/book/confirm/${mailData.token}`,
      notes: [until, unexpectedOf(request, texts)],
    },
    advice: describeAdvice(provider, texts.contact.questions, texts),
  };
}

/** Without a link to the page, where the same would come of it, and to a call in which the person does not take part. */
function limitOf(request: PageMail, to: MailAddress, language: Language): MailParts {
  const { provider, mailData } = request;
  const { texts, locale } = language;
  const mail = mailData.requested ? texts.page.requests['booking-limit'] : texts.mails['booking-limit'];
  const bookings = { ...request, mailData: { ...mailData, ...withoutLinks(mailData) } };
  return {
    ...sharedOf(bookings, to, language, mail),
    tone: 'ended',
    cause: texts.page.limit(mailData.maxPerPerson, singleLine(provider.name)),
    appointment: describeAppointment(bookings.mailData, provider, locale),
    advice: describeAdvice(provider, texts.page.cancelOne, texts),
    reason: unexpectedOf(request, texts),
  };
}

function sharedOf(
  { mailData, provider, crm, writtenAt }: PageMail,
  to: MailAddress,
  { texts, locale }: Language,
  { subject, ...mail }: MailTexts,
) {
  return {
    locale,
    brand: brandOf(crm),
    subject: subject(titleOf(mailData, provider), formatStart(mailData.start!, writtenAt, provider.timeZone, locale)),
    name: singleLine(provider.name),
    ...mail,
    greeting: texts.greeting(to.name || to.address),
    contact: contactOf(provider),
    imprints: imprintsOf(crm, provider),
    automatic: automaticOf(crm, provider, texts),
    texts,
  };
}

function unexpectedOf({ provider }: PageMail, { page }: Texts): string {
  return page.unexpected(singleLine(provider.name));
}
