import type { Appointment, GetParticipationNoticeResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { type CalendarMethod, writeCalendar } from '../calendar/write-calendar.ts';
import type { MailCalendar, MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import { multiLine, singleLine } from './clean-text.ts';
import { describeAppointment, linesOfLocation, titleOf } from './describe-appointment.ts';
import { type MailParts, renderHtml, renderText, type Tone } from './layout.ts';
import { contactOf, replyAddressOf, senderOf } from './mail-addresses.ts';
import type { MailOfChange } from './mail-of-change.ts';

export interface ParticipationMail {
  participationId: string;
  /** Of the participation, at the change that the mail is about. */
  version: number;
  mail: MailOfChange;
  notice: GetParticipationNoticeResponse;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  writtenAt: Date;
}

/** The mail about a booking, in the customer's language or else the CRM's; times are in the provider's zone. Undefined when there is no address. */
export function composeParticipationMail(request: ParticipationMail): MailContent | undefined {
  const { mail, notice, provider, crm, senderAddress } = request;
  const { participation, appointment } = notice;
  if (!participation?.email || !appointment) return undefined;
  const language = chooseLanguage(notice.language, crm.language);
  const parts = partsOf(request, appointment, language);
  return {
    from: senderOf(crm, senderAddress),
    replyTo: replyAddressOf(provider),
    to: { name: singleLine(participation.name), address: participation.email },
    language: language.locale,
    subject: parts.subject,
    text: renderText(parts),
    html: renderHtml(parts),
    calendars: mail.calendar ? [calendarOf(request, mail.calendar, appointment, language.locale)] : [],
  };
}

function partsOf({ mail, notice, provider }: ParticipationMail, appointment: Appointment, language: Language): MailParts {
  const { texts, locale } = language;
  const name = singleLine(provider.name);
  const { subject, status, headline, lead } = texts.mails[mail.template];
  const message = multiLine(notice.message ?? '');
  return {
    locale,
    tone: toneOf(mail),
    subject: subject(titleOf(factsOf(appointment), provider)),
    name,
    status,
    headline,
    greeting: texts.greeting(singleLine(notice.participation!.name)),
    lead,
    appointments: [describeAppointment(factsOf(appointment), provider, locale)],
    message: message ? { label: texts.labels.message(name), lines: message.split('\n') } : undefined,
    calendarNote: mail.calendar && (mail.calendar === 'REQUEST' ? texts.calendar.invitation : texts.calendar.cancellation(1)),
    contact: contactOf(provider),
    imprint: multiLine(provider.impressum ?? '').split('\n').filter(Boolean),
    texts,
  };
}

function toneOf({ template }: MailOfChange): Tone {
  switch (template) {
    case 'booking-confirmed':
    case 'request-confirmed':
    case 'booking-moved':
    case 'appointment-changed':
      return 'good';
    case 'request-received':
    case 'request-changed':
      return 'waiting';
    case 'request-declined':
    case 'booking-cancelled':
    case 'appointment-cancelled':
      return 'ended';
  }
}

function calendarOf(request: ParticipationMail, method: CalendarMethod, appointment: Appointment, locale: string): MailCalendar {
  const { participationId, version, notice, provider, crm, senderAddress, writtenAt } = request;
  const sender = senderOf(crm, senderAddress);
  const facts = factsOf(appointment);
  const text = writeCalendar({
    participationId,
    version,
    method,
    summary: titleOf(facts, provider),
    start: facts.start,
    end: facts.end,
    timeZone: provider.timeZone,
    location: linesOfLocation(appointment.address, locale).join(', '),
    description: [multiLine(notice.message ?? ''), [singleLine(provider.name), ...contactOf(provider).map(({ text }) => text)].join('\n')].filter(Boolean).join('\n\n'),
    organizer: { name: singleLine(provider.name), address: sender.address },
    attendee: { name: singleLine(notice.participation!.name), address: notice.participation!.email! },
    writtenAt,
  });
  return { method, text };
}

const factsOf = ({ description, start, end, address }: Appointment) => ({ description, start: start!, end: end!, address });
