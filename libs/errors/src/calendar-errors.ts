import type { ErrorTable } from './error-table.ts';

/** Errors of timeslots, appointments, series and participations. */
export const calendarErrors = {
  'timeslot.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'timeslot.not_found': { category: 'not_found', text: 'There is no timeslot with this reference.' },
  'timeslot.reference_taken': {
    category: 'conflict',
    text: 'A timeslot with this reference and different content already exists.',
  },
  'timeslot.has_appointments': { category: 'conflict', text: 'The timeslot has appointments that are not cancelled.' },
  'slot.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'slot.unavailable': { category: 'conflict', text: 'The slot cannot be booked.' },
  'slot.busy': { category: 'unavailable', text: 'Other requests are changing the slot. Retry later.' },
  'booking.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'booking.customer_missing': { category: 'conflict', text: 'The reservation has no customer yet.' },
  'booking_rules.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'appointment.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'appointment.not_found': { category: 'not_found', text: 'There is no appointment with this reference.' },
  'appointment.reference_taken': {
    category: 'conflict',
    text: 'An appointment with this reference and different content already exists.',
  },
  'appointment.cancelled': { category: 'conflict', text: 'The appointment is cancelled and cannot be booked.' },
  'appointment.busy': { category: 'unavailable', text: 'Other requests are changing the appointment. Retry later.' },
  'series.empty': { category: 'invalid', text: 'The series has no appointments.' },
  'series.too_long': { category: 'invalid', text: 'A series has at most 1000 appointments.' },
  'series.not_found': { category: 'not_found', text: 'There is no series with this id.' },
  'participation.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'participation.state_unsupported': {
    category: 'invalid',
    text: 'A participation cannot be moved to this state; create a new one instead.',
  },
  'participation.not_found': { category: 'not_found', text: 'There is no participation with this reference.' },
  'participation.reference_taken': {
    category: 'conflict',
    text: 'A participation with this reference already exists.',
  },
  'participation.capacity_exhausted': { category: 'conflict', text: 'All seats of the appointment are taken.' },
  'participation.move_not_allowed': {
    category: 'conflict',
    text: 'A participation cannot move from its current state to this one.',
  },
  'participation.busy': {
    category: 'unavailable',
    text: 'Other requests are changing the participation. Retry later.',
  },
  'link.not_found': { category: 'not_found', text: 'This link does not work, or no longer.' },
  'link.too_late': { category: 'conflict', text: 'It is too late to change the booking by the link.' },
  'link.not_allowed': { category: 'conflict', text: 'The booking cannot be changed like this by the link.' },
  'link.changed': { category: 'conflict', text: 'The booking begins at another time than the person was shown.' },
  'calendar.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'calendar.not_found': { category: 'not_found', text: 'There is no calendar with this reference.' },
  'calendar.reference_taken': {
    category: 'conflict',
    text: 'A calendar with this reference and different content already exists.',
  },
  'calendar.limit_reached': { category: 'conflict', text: 'A provider can have at most 100 calendars.' },
  'sandbox.invalid': { category: 'invalid', text: 'The request has invalid fields.' },
  'customer.has_future_appointments': { category: 'conflict', text: 'The customer takes part in future appointments.' },
  'customer.busy': { category: 'unavailable', text: 'Other requests are booking for the customer. Retry later.' },
} as const satisfies ErrorTable;
