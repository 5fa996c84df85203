import { type CalendarMethod, type CalendarOrganizer, writeCalendar } from '@scheduling/calendar-file';
import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import {
  contactOf,
  formatPrice,
  formatStart,
  linesOfLocation,
  multiLine,
  singleLine,
  titleOf,
} from '@scheduling/presentation';
import type { MailAddress, MailCalendar, MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import type { MailTexts, Texts } from '../language/texts.ts';
import { automaticOf, brandOf, imprintsOf } from './brand.ts';
import { type AppointmentFacts, describeAppointment, type Detail } from './describe-appointment.ts';
import { changesOf, earlierOf, leadOfChanges } from './describe-changes.ts';
import { actionOf, adviceOf, replyOf } from './describe-link.ts';
import { type MailParts, renderHtml, renderText, type Tone } from './layout.ts';
import { namedProvider, replyAddressOf, senderForProvider, senderNameOf } from './mail-addresses.ts';
import { type MailOfChange, participationMailKinds, person, stateOfReminder } from './mail-of-change.ts';
import { withoutLinks } from './remove-links.ts';

/** Who receives a mail, as of now. */
export interface Recipient {
  name: string;
  email: string;
  /** Language tag. Absent: the CRM's language. */
  language?: string | undefined;
}

export interface ParticipationMail {
  participationId: string;
  /** Of the participation, at the change that the mail is about. */
  version: number;
  mail: MailOfChange;
  /** Who caused the change, as events say it. */
  actor: string;
  recipient: Recipient;
  /** What it says of the participant is not used. */
  mailData: GetParticipationMailDataResponse;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  /** Of the event in the person's calendar. */
  organizer: CalendarOrganizer;
  /** The person's link to the booking. */
  link?: string | undefined;
  /** On which everybody can book. */
  page?: string | undefined;
  writtenAt: Date;
}

/** The mail about a booking, in the customer's language or else the CRM's; times are in the provider's zone. */
export function composeParticipationMail(given: ParticipationMail): MailContent {
  const request = { ...given, provider: namedProvider(given.provider, given.crm) };
  const { mail, recipient, provider, crm, senderAddress } = request;
  const language = chooseLanguage(recipient.language, crm.language);
  const parts = partsOf(request, language);
  return {
    from: senderForProvider(provider, crm, senderAddress),
    replyTo: replyAddressOf(provider),
    to: addressOf(recipient),
    language: language.locale,
    subject: parts.subject,
    text: renderText(parts),
    html: renderHtml(parts),
    calendars: mail.calendar ? [calendarOf(request, mail.calendar, language)] : [],
  };
}

function partsOf(request: ParticipationMail, language: Language): MailParts {
  const { mail, recipient, mailData, provider, crm, writtenAt } = request;
  const { texts, locale } = language;
  const facts = factsOf(request);
  const name = singleLine(provider.name);
  const { subject, lead } = subjectAndLeadOf(request, texts);
  const { status, headline } = texts.mails[mail.template];
  const details = detailsOf(request, language);
  const earlier = earlierOf(mailData, provider, locale, texts);
  // What was said about the last change is not what a reminder is about.
  const message = stateOfReminder[mail.template] !== undefined ? '' : multiLine(mailData.message ?? '');
  const label = isByPerson(request) ? texts.labels.ownMessage : texts.labels.message;
  return {
    locale,
    tone: toneOf(mail),
    brand: brandOf(crm),
    subject: subject(titleOf(facts, provider), formatStart(facts.start!, writtenAt, provider.timeZone, locale)),
    name,
    status,
    headline,
    greeting: texts.greeting(singleLine(recipient.name)),
    lead,
    cause: causeOf(request, texts),
    appointment: describeAppointment(facts, provider, locale, { details, earlier }),
    message: message ? { label: label(name), lines: message.split('\n') } : undefined,
    reply: replyOf(request, texts),
    action: actionOf(request, language),
    advice: adviceOf(request, texts),
    calendarNote: calendarNoteOf(mail, texts),
    contact: contactOf(provider),
    imprints: imprintsOf(crm, provider),
    automatic: automaticOf(crm, provider, texts),
    texts,
  };
}

/** What a mail about a change says of it, if it is certain what the person was told before. */
function subjectAndLeadOf({ mail, mailData }: ParticipationMail, texts: Texts): Pick<MailTexts, 'subject' | 'lead'> {
  const { subject, lead } = texts.mails[mail.template];
  const changes = changesOf(mailData);
  if (changes === undefined) return { subject, lead };
  const { subjects, stillRequested } = texts.changes;
  const said = leadOfChanges(changes, texts);
  if (participationMailKinds[mail.template].about === 'request') return { subject, lead: `${said} ${stillRequested}` };
  const own = changes.time
    ? subjects.time
    : changes.place
      ? subjects.place
      : texts.mails['appointment-changed'].subject;
  return { subject: own, lead: said };
}

/** By the own link: what comes with such a change is a message to the provider. Requests are decided by another link. */
function isByPerson({ actor, mail: { template } }: ParticipationMail): boolean {
  return actor === person && template !== 'request-confirmed' && template !== 'request-declined';
}

/**
 * A CRM acts for the provider as well as for the customer, so all that is known of a change that it made is through
 * which CRM.
 */
function causeOf(request: ParticipationMail, { cancelled }: Texts): string | undefined {
  const {
    mail: { template },
    actor,
    crm,
  } = request;
  const through = actor.startsWith('crm:') ? senderNameOf(crm) : undefined;
  switch (template) {
    case 'booking-cancelled':
      return isByPerson(request) ? cancelled.byYourself : cancelled.booking(through);
    case 'appointment-cancelled':
      return cancelled.appointment(through);
    default:
      return undefined;
  }
}

function calendarNoteOf({ template, calendar }: MailOfChange, { calendar: texts }: Texts): string | undefined {
  if (calendar === undefined) return undefined;
  if (calendar === 'CANCEL') return texts.cancellation;
  const isUpdate = template === 'booking-moved' || template === 'appointment-changed';
  return `${isUpdate ? texts.update : texts.invitation} ${texts.declining}`;
}

/** No price once it has ended: the service does not know whether the provider charges for it. */
function detailsOf({ mail, mailData }: ParticipationMail, { texts: { labels }, locale }: Language): Detail[] {
  const reference = { label: labels.reference, value: singleLine(mailData.reference) };
  const { price } = mailData;
  const showsPrice = price && price.value > 0 && toneOf(mail) !== 'ended';
  return showsPrice ? [{ label: labels.price, value: formatPrice(price, locale) }, reference] : [reference];
}

function toneOf({ template }: MailOfChange): Tone {
  return participationMailKinds[template].tone;
}

function calendarOf(request: ParticipationMail, method: CalendarMethod, language: Language): MailCalendar {
  const { participationId, version, recipient, provider, organizer, link, writtenAt } = request;
  const facts = factsOf(request);
  const text = writeCalendar({
    participationId,
    version,
    method,
    summary: titleOf(facts, provider),
    start: facts.start!,
    end: facts.end!,
    timeZone: provider.timeZone,
    location: linesOfLocation(facts.address, language.locale).join(', '),
    description: descriptionOf(request, method, language),
    url: method === 'REQUEST' ? link : undefined,
    organizer,
    attendee: addressOf(recipient),
    writtenAt,
  });
  return { method, text };
}

function descriptionOf(request: ParticipationMail, method: CalendarMethod, language: Language): string {
  const { provider, mailData } = request;
  const action = actionOf(request, language);
  const link = action && [`${action.label}: ${action.url}`, ...action.notes];
  return [
    isByPerson(request) ? '' : multiLine(mailData.message ?? ''),
    method === 'REQUEST' && [...(link ?? []), language.texts.calendar.declining].join('\n'),
    [singleLine(provider.name), ...contactOf(provider).map(({ text }) => text)].join('\n'),
  ]
    .filter(Boolean)
    .join('\n\n');
}

function addressOf({ name, email }: Recipient): MailAddress {
  return { name: singleLine(name), address: email };
}

function factsOf({ mail, mailData }: ParticipationMail): AppointmentFacts {
  return toneOf(mail) === 'ended' ? withoutLinks(mailData) : mailData;
}
