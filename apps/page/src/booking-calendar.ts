import { type PublishedBooking, writeCalendar } from '@scheduling/calendar-file';
import { contactOf, linesOfLocation, singleLine, titleOf } from '@scheduling/presentation';
import { situationOf } from './describe-booking.ts';
import type { Situation } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/**
 * The calendar file of a booking. The event is the one of the mails: a calendar that has it from them does not show it
 * twice.
 *
 * @param url of the page of the booking
 */
export function bookingCalendar({ booking, provider, texts, locale }: Visit, url: string): string {
  return writeCalendar({
    method: 'PUBLISH',
    status: statuses[situationOf(booking)],
    participationId: booking.participationId,
    version: booking.version,
    summary: titleOf(booking, provider),
    start: booking.start!,
    end: booking.end!,
    timeZone: booking.timeZone,
    location: linesOfLocation(booking.address, locale).join(', '),
    description: [
      [singleLine(provider.name), ...contactOf(provider).map(({ text }) => text)].join('\n'),
      texts.calendar(url),
    ].join('\n\n'),
    url,
    writtenAt: booking.now!,
  });
}

const statuses: Record<Situation, PublishedBooking['status']> = {
  reserved: 'TENTATIVE',
  requested: 'TENTATIVE',
  lapsed: 'TENTATIVE',
  booked: 'CONFIRMED',
  over: 'CONFIRMED',
  cancelled: 'CANCELLED',
};
