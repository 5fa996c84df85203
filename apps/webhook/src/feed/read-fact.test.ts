import { AppointmentChanged, CustomerChanged, MailFailed, ParticipationChanged } from '@scheduling/contracts/events/v1';
import { expect, it } from 'vitest';
import { factOfAppointment, factOfCustomer, factOfMail, factOfParticipation } from './read-fact.ts';

const subjectId = '0197c4ce-5a3d-7b02-8f6e-4c1d2e3f4a5b';

it('reads the events of services older than 2026-11-29, which say less', () => {
  const participation = ParticipationChanged.fromPartial({ crmId: 'crm', participationId: subjectId, version: 2, cause: 'PARTICIPATION_CHANGE_CAUSE_UPDATED', toState: 'PARTICIPATION_STATE_BOOKED' });
  expect(factOfParticipation(participation)).toEqual({
    crmId: 'crm',
    type: 'participation.changed',
    subjectId,
    version: 2,
    providerId: null,
    appointmentId: null,
    customerId: null,
    state: 'BOOKED',
    previousState: null,
    cause: 'UPDATED',
    actor: 'service',
  });
  const customer = (version: number) => factOfCustomer(CustomerChanged.fromPartial({ crmId: 'crm', customerId: subjectId, version }));
  expect([customer(1).type, customer(2).type]).toEqual(['customer.created', 'customer.changed']);
});

it('reads the deletion of an appointment', () => {
  const change = AppointmentChanged.fromPartial({
    crmId: 'crm',
    appointmentId: subjectId,
    providerId: 'p',
    change: 'APPOINTMENT_CHANGE_DELETED',
    fromState: 'APPOINTMENT_STATE_ACTIVE',
    version: 2,
    actor: 'crm:sk_1',
  });
  expect(factOfAppointment(change)).toMatchObject({ type: 'appointment.deleted', state: null, previousState: 'ACTIVE', providerId: 'p', actor: 'crm:sk_1' });
});

it('reads a change of an appointment that it does not know as an update', () => {
  const change = AppointmentChanged.fromPartial({ crmId: 'crm', appointmentId: subjectId, change: 'UNRECOGNIZED', fromState: 'APPOINTMENT_STATE_ACTIVE', version: 2 });
  expect(factOfAppointment(change)).toMatchObject({ type: 'appointment.changed', state: 'ACTIVE', previousState: 'ACTIVE', version: 2 });
});

it('reads a failed mail, whose template is for support only', () => {
  const mail = { crmId: 'crm', mailId: 'm', aboutId: subjectId, template: 'booking-confirmed', customerId: 'c', providerId: 'p' };
  expect(factOfMail(mail)).toMatchObject({ type: 'mail.failed', subjectId, version: 0, customerId: 'c', providerId: 'p', cause: 'booking-confirmed', actor: 'service' });
  expect(factOfMail(MailFailed.fromPartial({ crmId: 'crm', mailId: 'm', aboutId: subjectId }))).toMatchObject({ customerId: null, providerId: null });
});
