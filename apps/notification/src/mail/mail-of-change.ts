import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause, type ParticipationChanged } from '@scheduling/contracts/events/v1';
import type { CalendarMethod } from '../calendar/write-calendar.ts';
import type { MailTemplate } from '../language/texts.ts';

const { RESERVED, REQUESTED, BOOKED, CANCELED } = ParticipationState;

export interface MailOfChange {
  template: Exclude<MailTemplate, 'removed-by-deletion' | 'email-verification'>;
  /**
   * What the mail does to the person's calendar. Only bookings are added to it, so only the end of a booking to which
   * the person was invited is a removal.
   */
  calendar?: CalendarMethod | undefined;
}

/**
 * What each mail does to the person's calendar if that was not recorded. Appointment cancelled may be about somebody
 * who was not booked: a calendar ignores the removal of what it does not have.
 */
export const calendarOfTemplate: Record<MailOfChange['template'], CalendarMethod | undefined> = {
  'booking-confirmed': 'REQUEST',
  'request-received': undefined,
  'request-confirmed': 'REQUEST',
  'request-declined': undefined,
  'booking-moved': 'REQUEST',
  'appointment-changed': 'REQUEST',
  'request-changed': undefined,
  'booking-cancelled': 'CANCEL',
  'appointment-cancelled': 'CANCEL',
};

/** The mail that belongs to a change of a participation, if any: interface 3.1 and 4.2. */
export function mailOfChange({
  cause,
  fromState,
  toState,
  neverInvited,
}: Pick<ParticipationChanged, 'cause' | 'fromState' | 'toState' | 'neverInvited'>): MailOfChange | undefined {
  const removal = neverInvited ? undefined : 'CANCEL';
  switch (cause) {
    case ParticipationChangeCause.CREATED:
      if (toState === BOOKED) return { template: 'booking-confirmed', calendar: 'REQUEST' };
      return toState === REQUESTED ? { template: 'request-received' } : undefined;
    case ParticipationChangeCause.UPDATED:
      if (fromState === RESERVED && toState === BOOKED) return { template: 'booking-confirmed', calendar: 'REQUEST' };
      if (fromState === REQUESTED && toState === BOOKED) return { template: 'request-confirmed', calendar: 'REQUEST' };
      if (fromState === REQUESTED && toState === CANCELED) return { template: 'request-declined' };
      return fromState === BOOKED && toState === CANCELED
        ? { template: 'booking-cancelled', calendar: removal }
        : undefined;
    case ParticipationChangeCause.APPOINTMENT_CANCELLED:
      return { template: 'appointment-cancelled', calendar: fromState === BOOKED ? removal : undefined };
    case ParticipationChangeCause.MOVED:
      return toState === BOOKED ? { template: 'booking-moved', calendar: 'REQUEST' } : { template: 'request-changed' };
    case ParticipationChangeCause.APPOINTMENT_CHANGED:
      return toState === BOOKED
        ? { template: 'appointment-changed', calendar: 'REQUEST' }
        : { template: 'request-changed' };
    case ParticipationChangeCause.REMOVED:
    case ParticipationChangeCause.UNSPECIFIED:
    case ParticipationChangeCause.UNRECOGNIZED:
      return undefined;
    default:
      return cause satisfies never;
  }
}
