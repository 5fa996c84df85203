import type { ErrorTable } from './error-table.ts';

/** Errors of timeslots, appointments, series and participations. */
export const calendarErrors = {
  'timeslot.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'timeslot.not_found': { category: 'not_found', text: 'There is no timeslot with this reference.' },
  'timeslot.reference_taken': {
    category: 'conflict',
    text: 'A timeslot with this reference and other content exists.',
  },
  'timeslot.has_appointments': { category: 'conflict', text: 'The timeslot has appointments that are not cancelled.' },
  'slot.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'slot.unavailable': { category: 'conflict', text: 'The slot cannot be booked.' },
  'slot.busy': { category: 'unavailable', text: 'The slot is being changed by others.' },
  'booking.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'booking.customer_missing': { category: 'conflict', text: 'The reservation has no customer yet.' },
  'booking_rules.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'appointment.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'appointment.not_found': { category: 'not_found', text: 'There is no appointment with this reference.' },
  'appointment.reference_taken': {
    category: 'conflict',
    text: 'An appointment with this reference and other content exists.',
  },
  'appointment.cancelled': { category: 'conflict', text: 'The appointment is cancelled and cannot be booked.' },
  'appointment.busy': { category: 'unavailable', text: 'The appointment is being created and deleted by others.' },
  'series.empty': { category: 'invalid', text: 'The series has no appointments.' },
  'series.too_long': { category: 'invalid', text: 'A series has at most 1000 appointments.' },
  'series.not_found': { category: 'not_found', text: 'There is no series with this id.' },
  'participation.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'participation.state_unsupported': {
    category: 'invalid',
    text: 'A participation cannot be moved to this state; create a new one instead.',
  },
  'participation.not_found': { category: 'not_found', text: 'There is no participation with this reference.' },
  'participation.reference_taken': { category: 'conflict', text: 'A participation with this reference exists.' },
  'participation.capacity_exhausted': { category: 'conflict', text: 'All seats of the appointment are taken.' },
  'participation.move_not_allowed': {
    category: 'conflict',
    text: 'A participation cannot move from its present state to this one.',
  },
  'participation.busy': { category: 'unavailable', text: 'The participation is being changed by others.' },
  'sandbox.invalid': { category: 'invalid', text: 'The request has fields that are not valid.' },
  'customer.has_future_appointments': { category: 'conflict', text: 'The customer takes part in future appointments.' },
  'customer.busy': { category: 'unavailable', text: 'The customer is being booked by others.' },
} as const satisfies ErrorTable;
