import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause, type ParticipationChanged } from '@scheduling/contracts/events/v1';
import type { ParticipationMailTemplate } from '@scheduling/runtime';
import type { CalendarMethod } from '../calendar/write-calendar.ts';
import type { Tone } from './layout.ts';

const { RESERVED, REQUESTED, BOOKED, CANCELED } = ParticipationState;

export interface MailOfChange {
  template: ParticipationMailTemplate;
  /**
   * What the mail does to the person's calendar. Only bookings are added to it, so only the end of a booking to which
   * the person was invited is a removal.
   */
  calendar?: CalendarMethod | undefined;
}

interface ParticipationMailKind {
  tone: Tone;
  /**
   * What the mail does to the calendar of a person who was booked. Appointment cancelled may be about somebody who was
   * not: then it does nothing.
   */
  calendar: CalendarMethod | undefined;
  /** Nobody may learn too late that an appointment does not take place: these mails count, but never wait for a quota. */
  isUrgent: boolean;
}

export const participationMailKinds: Record<ParticipationMailTemplate, ParticipationMailKind> = {
  'booking-confirmed': { tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-received': { tone: 'waiting', calendar: undefined, isUrgent: false },
  'request-confirmed': { tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-declined': { tone: 'ended', calendar: undefined, isUrgent: true },
  'booking-moved': { tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'appointment-changed': { tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-changed': { tone: 'waiting', calendar: undefined, isUrgent: false },
  'booking-cancelled': { tone: 'ended', calendar: 'CANCEL', isUrgent: true },
  'appointment-cancelled': { tone: 'ended', calendar: 'CANCEL', isUrgent: true },
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
