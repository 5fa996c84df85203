import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { describe, expect, it } from 'vitest';
import { mailOfChange, participationMailKinds, person, stateOfReminder } from './mail-of-change.ts';

const { UNSPECIFIED, RESERVED, REQUESTED, BOOKED, CANCELED, DELETED } = ParticipationState;
const { CREATED, UPDATED, APPOINTMENT_CANCELLED, APPOINTMENT_CHANGED, MOVED } = ParticipationChangeCause;
const states = [RESERVED, REQUESTED, BOOKED, CANCELED, DELETED];

/** Every change that sends a mail, and what it does to the calendar; no other change sends one. */
const mails = new Map([
  [`${CREATED} ${UNSPECIFIED} ${BOOKED}`, 'booking-confirmed REQUEST'],
  [`${CREATED} ${UNSPECIFIED} ${REQUESTED}`, 'request-received undefined'],
  [`${UPDATED} ${RESERVED} ${BOOKED}`, 'booking-confirmed REQUEST'],
  [`${UPDATED} ${REQUESTED} ${BOOKED}`, 'request-confirmed REQUEST'],
  [`${UPDATED} ${REQUESTED} ${CANCELED}`, 'request-declined undefined'],
  [`${UPDATED} ${BOOKED} ${CANCELED}`, 'booking-cancelled CANCEL'],
  [`${MOVED} ${BOOKED} ${BOOKED}`, 'booking-moved REQUEST'],
  [`${MOVED} ${REQUESTED} ${REQUESTED}`, 'request-changed undefined'],
  [`${APPOINTMENT_CHANGED} ${BOOKED} ${BOOKED}`, 'appointment-changed REQUEST'],
  [`${APPOINTMENT_CHANGED} ${REQUESTED} ${REQUESTED}`, 'request-changed undefined'],
  ...states.map(
    (state) =>
      [
        `${APPOINTMENT_CANCELLED} ${state} ${CANCELED}`,
        `appointment-cancelled ${state === BOOKED ? 'CANCEL' : 'undefined'}`,
      ] as const,
  ),
]);

const changes = [
  ...states.map((toState) => ({ cause: CREATED, fromState: UNSPECIFIED, toState })),
  ...states.flatMap((fromState) => states.map((toState) => ({ cause: UPDATED, fromState, toState }))),
  ...[MOVED, APPOINTMENT_CHANGED].flatMap((cause) =>
    [BOOKED, REQUESTED].map((state) => ({ cause, fromState: state, toState: state })),
  ),
  ...states.map((fromState) => ({ cause: APPOINTMENT_CANCELLED, fromState, toState: CANCELED })),
];

describe('the mail of a change', () => {
  it.each(changes)('$cause from $fromState to $toState', (change) => {
    const [mail, withoutInvitation] = [false, true].map((neverInvited) =>
      mailOfChange({ ...change, neverInvited, actor: 'crm:key', decided: false }),
    );
    expect(mail && `${mail.template} ${mail.calendar}`).toBe(
      mails.get(`${change.cause} ${change.fromState} ${change.toState}`),
    );
    expect(withoutInvitation).toEqual(
      mail && { ...mail, calendar: mail.calendar === 'CANCEL' ? undefined : mail.calendar },
    );
  });
});

it('a request that its person cancels is withdrawn, not declined', () => {
  const change = {
    cause: UPDATED,
    fromState: REQUESTED,
    toState: CANCELED,
    neverInvited: true,
    actor: person,
    decided: false,
  };
  expect(mailOfChange(change)).toEqual({ template: 'request-withdrawn' });
  expect(mailOfChange({ ...change, decided: true })).toEqual({ template: 'request-declined' });
  expect(mailOfChange({ ...change, fromState: BOOKED, neverInvited: false })).toEqual({
    template: 'booking-cancelled',
    calendar: 'CANCEL',
  });
});

describe('what a mail does to the calendar if that was not recorded', () => {
  it.each(Object.entries(participationMailKinds))('%s: $calendar', (template, { calendar }) => {
    const reminders = Object.keys(stateOfReminder).map((reminder) => `${reminder} undefined`);
    const known = [...mails.values(), 'request-withdrawn undefined', ...reminders]
      .filter((mail) => mail.startsWith(`${template} `))
      .map((mail) => mail.split(' ')[1]);
    // Also removes from the calendar what may not be there.
    expect(new Set(known)).toEqual(
      new Set(template === 'appointment-cancelled' ? ['CANCEL', 'undefined'] : [String(calendar)]),
    );
  });
});
