import { type CalendarOrganizer, writeCalendar } from '@scheduling/calendar-file';
import type { RemovedParticipation } from '@scheduling/contracts/calendar/v1';
import type { GetErasureNoticeResponse } from '@scheduling/contracts/customer/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { contactOf, formatStart, linesOfLocation, singleLine, titleOf } from '@scheduling/presentation';
import type { MailCalendar, MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import { automaticOf, brandOf, imprintsOf } from './brand.ts';
import { describeAppointment } from './describe-appointment.ts';
import { describeAdvice } from './describe-link.ts';
import { type MailParts, renderHtml, renderText } from './layout.ts';
import { namedProvider, replyAddressOf, senderForProvider } from './mail-addresses.ts';
import { withoutLinks } from './remove-links.ts';

export interface RemovalMail {
  notice: Omit<GetErasureNoticeResponse, 'removed'>;
  /** What it is about. */
  removed: RemovedParticipation;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  /** Of the event in the person's calendar. */
  organizer: CalendarOrganizer;
  writtenAt: Date;
}

/**
 * The last mail to a person whose data is deleted, about one of the appointments that the person took part in, which is
 * removed from the person's calendar.
 */
export function composeRemovalMail(given: RemovalMail): MailContent {
  const request = { ...given, provider: namedProvider(given.provider, given.crm) };
  const { notice, removed, provider, crm, senderAddress } = request;
  const language = chooseLanguage(notice.language, crm.language);
  const parts = partsOf(request, language);
  return {
    from: senderForProvider(provider, crm, senderAddress),
    replyTo: replyAddressOf(provider),
    to: { name: singleLine(notice.name), address: notice.email },
    language: language.locale,
    subject: parts.subject,
    text: renderText(parts),
    html: renderHtml(parts),
    calendars: removed.neverInvited ? [] : [calendarOf(request, language.locale)],
  };
}

function partsOf({ notice, removed, provider, crm, writtenAt }: RemovalMail, { texts, locale }: Language): MailParts {
  const { subject, ...mail } = texts.mails['removed-by-deletion'];
  const facts = withoutLinks(removed);
  return {
    locale,
    tone: 'ended',
    brand: brandOf(crm),
    subject: subject(titleOf(facts, provider), formatStart(facts.start!, writtenAt, provider.timeZone, locale)),
    name: singleLine(provider.name),
    ...mail,
    greeting: texts.greeting(singleLine(notice.name)),
    appointment: describeAppointment(facts, provider, locale),
    advice: describeAdvice(provider, texts.contact.questions, texts),
    calendarNote: removed.neverInvited ? undefined : texts.calendar.cancellation,
    contact: contactOf(provider),
    imprints: imprintsOf(crm, provider),
    automatic: automaticOf(crm, provider, texts),
    texts,
  };
}

function calendarOf({ notice, removed, provider, organizer, writtenAt }: RemovalMail, locale: string): MailCalendar {
  const facts = withoutLinks(removed);
  const text = writeCalendar({
    participationId: removed.participationId,
    version: removed.version,
    method: 'CANCEL',
    summary: titleOf(facts, provider),
    start: facts.start!,
    end: facts.end!,
    timeZone: provider.timeZone,
    location: linesOfLocation(facts.address, locale).join(', '),
    description: '',
    organizer,
    attendee: { name: singleLine(notice.name), address: notice.email },
    writtenAt,
  });
  return { method: 'CANCEL', text };
}
