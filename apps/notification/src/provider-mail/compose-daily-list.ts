import {
  type DayAppointment as AnsweredAppointment,
  type DayParticipation as AnsweredParticipation,
  ParticipationState,
} from '@scheduling/contracts/calendar/v1';
import {
  type ContactLine,
  contactOf,
  formatDay,
  formatTimes,
  linesOfLocation,
  singleLine,
  titleOf,
} from '@scheduling/presentation';
import type { MailContent } from '../db/schema.ts';
import type { Language } from '../language/language.ts';
import type { ListedBooking } from '../mail/layout.ts';
import { contentOf, languageOf, type ProviderMailParties } from './compose-provider-mail.ts';

/** As calendar answers it, but everybody has an id by which the person may be erased. */
export type DayParticipation = AnsweredParticipation & { customerId: string };
export type DayAppointment = Omit<AnsweredAppointment, 'participations'> & { participations: DayParticipation[] };

export interface DailyList extends ProviderMailParties {
  /** YYYY-MM-DD, in the zone of the provider. */
  date: string;
  /** In the order in which they are shown. */
  appointments: DayAppointment[];
  /** How many there are on this day. */
  booked: number;
  requested: number;
  /** How many of them are not shown. */
  unlisted: number;
}

/** The mail to a provider with the appointments of a day (interface 6.5). */
export function composeDailyList(list: DailyList): MailContent {
  const { date, appointments, booked, requested, unlisted, provider } = list;
  const language = languageOf(list);
  const { texts, locale } = language;
  const { subject, ...mailTexts } = texts.mails['provider-day'];
  const day = formatDay(date, provider.timeZone, locale);
  const when = `${day}: ${texts.provider.day.bookings(booked, requested)}`;
  return contentOf(list, language, {
    parts: {
      tone: 'neutral',
      subject: subject(singleLine(provider.name), when),
      ...mailTexts,
      headline: `${mailTexts.headline}, ${day}`,
      list: {
        rows: appointments.map((appointment) => describe(appointment, list, language)),
        more: unlisted > 0 ? texts.provider.unlisted(unlisted) : undefined,
      },
    },
  });
}

function describe(
  { start, end, address, participations, ...appointment }: DayAppointment,
  { provider }: DailyList,
  { texts, locale }: Language,
): ListedBooking {
  const { lines, isOneDay } = formatTimes(start!, end!, provider.timeZone, locale);
  const nobody = [{ text: texts.provider.day.noBookings, link: undefined }];
  return {
    when: isOneDay ? lines[1]! : lines.join(' '),
    title: titleOf(appointment, provider),
    where: linesOfLocation(address, locale).join(', '),
    who: participations.length === 0 ? [nobody] : participations.map((each) => describePerson(each, texts)),
  };
}

function describePerson(
  { name, email, mobile, state }: DayParticipation,
  { provider: { day } }: Language['texts'],
): ContactLine[] {
  const who = singleLine(name ?? '') || day.nobody;
  const text = state === ParticipationState.REQUESTED ? `${who} (${day.requested})` : who;
  return [{ text, link: undefined }, ...contactOf({ email, mobile })];
}
