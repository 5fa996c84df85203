import type { CalendarMethod } from '@scheduling/calendar-file';
import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause, type ParticipationChanged } from '@scheduling/contracts/events/v1';
import type { ParticipationMailTemplate } from '@scheduling/runtime';
import type { Tone } from './layout.ts';

const { RESERVED, REQUESTED, BOOKED, CANCELED } = ParticipationState;

/**
 * The actor of a change that a person has made by a link, as events say it: whoever has booked, or who decides a request
 * for the provider.
 */
export const person = 'person';

export interface MailOfChange {
  template: ParticipationMailTemplate;
  /**
   * What the mail does to the person's calendar. Only bookings are added to it, so only the end of a booking to which
   * the person was invited is a removal.
   */
  calendar?: CalendarMethod | undefined;
}

interface ParticipationMailKind {
  /** What the person has, or had. */
  about: 'booking' | 'request';
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
  'booking-confirmed': { about: 'booking', tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-received': { about: 'request', tone: 'waiting', calendar: undefined, isUrgent: false },
  'request-confirmed': { about: 'booking', tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-declined': { about: 'request', tone: 'ended', calendar: undefined, isUrgent: true },
  // Who has withdrawn a request knows it.
  'request-withdrawn': { about: 'request', tone: 'ended', calendar: undefined, isUrgent: false },
  'booking-moved': { about: 'booking', tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'appointment-changed': { about: 'booking', tone: 'good', calendar: 'REQUEST', isUrgent: false },
  'request-changed': { about: 'request', tone: 'waiting', calendar: undefined, isUrgent: false },
  'booking-cancelled': { about: 'booking', tone: 'ended', calendar: 'CANCEL', isUrgent: true },
  'appointment-cancelled': { about: 'booking', tone: 'ended', calendar: 'CANCEL', isUrgent: true },
  // The event is in the calendar already.
  'booking-reminder': { about: 'booking', tone: 'good', calendar: undefined, isUrgent: false },
  'request-unconfirmed': { about: 'request', tone: 'waiting', calendar: undefined, isUrgent: false },
};

/** The mails that are about no change, and the state that the participation is in as long as they are true. */
export const stateOfReminder: Partial<Record<string, ParticipationState>> = {
  'booking-reminder': BOOKED,
  'request-unconfirmed': REQUESTED,
} satisfies Partial<Record<ParticipationMailTemplate, ParticipationState>>;

/** The mail that belongs to a change of a participation, if any: interface 3.1 and 4.2. */
export function mailOfChange({
  cause,
  fromState,
  toState,
  neverInvited,
  actor,
  decided,
}: Pick<ParticipationChanged, 'cause' | 'fromState' | 'toState' | 'neverInvited' | 'actor' | 'decided'>):
  | MailOfChange
  | undefined {
  const removal = neverInvited ? undefined : 'CANCEL';
  switch (cause) {
    case ParticipationChangeCause.CREATED:
      if (toState === BOOKED) return { template: 'booking-confirmed', calendar: 'REQUEST' };
      return toState === REQUESTED ? { template: 'request-received' } : undefined;
    case ParticipationChangeCause.UPDATED:
      if (fromState === RESERVED && toState === BOOKED) return { template: 'booking-confirmed', calendar: 'REQUEST' };
      if (fromState === REQUESTED && toState === BOOKED) return { template: 'request-confirmed', calendar: 'REQUEST' };
      if (fromState === REQUESTED && toState === CANCELED)
        return { template: actor === person && !decided ? 'request-withdrawn' : 'request-declined' };
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
