import type { RemovedParticipation } from '@scheduling/contracts/calendar/v1';
import type { GetErasureNoticeResponse } from '@scheduling/contracts/customer/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { writeCalendar } from '../calendar/write-calendar.ts';
import type { MailCalendar, MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import { brandOf, imprintsOf } from './brand.ts';
import { singleLine } from './clean-text.ts';
import { describeAppointment, linesOfLocation, titleOf } from './describe-appointment.ts';
import { type MailParts, renderHtml, renderText } from './layout.ts';
import { contactOf, organizerOf, replyAddressOf, senderForProvider, senderOf } from './mail-addresses.ts';
import { withoutLinks } from './remove-links.ts';

export interface RemovalMail {
  notice: GetErasureNoticeResponse;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  writtenAt: Date;
}

/** The last mail to a person whose data is deleted, about the appointments deleted with it; each is removed from the person's calendar. */
export function composeRemovalMail(request: RemovalMail): MailContent {
  const { notice, provider, crm, senderAddress } = request;
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
    calendars: notice.removed.map((removed) => calendarOf(request, removed, language.locale)),
  };
}

function partsOf({ notice, provider, crm }: RemovalMail, { texts, locale }: Language): MailParts {
  const { subject, ...mail } = texts.mails['removed-by-deletion'];
  const name = singleLine(provider.name);
  return {
    locale,
    tone: 'ended',
    brand: brandOf(crm),
    subject: subject(name),
    name,
    ...mail,
    greeting: texts.greeting(singleLine(notice.name)),
    appointments: notice.removed.map((removed) => describeAppointment(factsOf(removed), provider, locale)),
    calendarNote: texts.calendar.cancellation(notice.removed.length),
    contact: contactOf(provider),
    imprints: imprintsOf(crm, provider),
    texts,
  };
}

function calendarOf(request: RemovalMail, removed: RemovedParticipation, locale: string): MailCalendar {
  const { notice, provider, crm, senderAddress, writtenAt } = request;
  const facts = factsOf(removed);
  const text = writeCalendar({
    participationId: removed.participationId,
    version: removed.version,
    method: 'CANCEL',
    summary: titleOf(facts, provider),
    start: facts.start,
    end: facts.end,
    timeZone: provider.timeZone,
    location: linesOfLocation(facts.address, locale).join(', '),
    description: '',
    organizer: organizerOf(provider, senderOf(crm, senderAddress), notice.email),
    attendee: { name: singleLine(notice.name), address: notice.email },
    writtenAt,
  });
  return { method: 'CANCEL', text };
}

const factsOf = ({ description, start, end, address }: RemovedParticipation) => withoutLinks({ description, start: start!, end: end!, address });
