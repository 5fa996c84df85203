import { AppointmentChanged, CustomerChanged, MailFailed, ParticipationChanged } from '@scheduling/contracts/events/v1';
import { expect, it } from 'vitest';
import { factOfAppointment, factOfCustomer, factOfMail, factOfParticipation } from './read-fact.ts';

const subjectId = '0197c4ce-5a3d-7b02-8f6e-4c1d2e3f4a5b';

it('reads a change of a customer, and one that it does not know as an update', () => {
  const fact = (change: 'CUSTOMER_CHANGE_CREATED' | 'CUSTOMER_CHANGE_DELETED' | 'UNRECOGNIZED') =>
    factOfCustomer(CustomerChanged.fromPartial({ crmId: 'crm', customerId: subjectId, version: 2, change }));
  expect(fact('CUSTOMER_CHANGE_CREATED')).toMatchObject({ type: 'customer.created', subjectId, version: 2 });
  expect(fact('CUSTOMER_CHANGE_DELETED').type).toBe('customer.deleted');
  expect(fact('UNRECOGNIZED').type).toBe('customer.changed');
});

it('reads the places of events among those about their appointments, with capacities', () => {
  const places = { ordinal: 4, previousAppointmentId: 'previous', previousOrdinal: 9 };
  const moved = {
    crmId: 'crm',
    participationId: subjectId,
    appointmentId: 'appointment',
    version: 2,
    cause: 'PARTICIPATION_CHANGE_CAUSE_MOVED',
    exempt: true,
    ...places,
  } as const;
  expect(factOfParticipation(ParticipationChanged.fromPartial(moved))).toMatchObject({
    type: 'participation.moved',
    appointmentId: 'appointment',
    exempt: true,
    capacity: null,
    ...places,
  });
  expect(factOfParticipation(ParticipationChanged.fromPartial({ ...moved, exempt: false }))).toMatchObject({
    exempt: false,
  });
  const appointment = {
    crmId: 'crm',
    appointmentId: subjectId,
    change: 'APPOINTMENT_CHANGE_CREATED',
    version: 1,
    ordinal: 1,
    capacity: 0,
  } as const;
  expect(factOfAppointment(AppointmentChanged.fromPartial(appointment))).toMatchObject({
    capacity: 0,
    ordinal: 1,
    appointmentId: null,
    exempt: null,
  });
  expect(
    factOfAppointment(AppointmentChanged.fromPartial({ ...appointment, change: 'APPOINTMENT_CHANGE_DELETED' })),
  ).toMatchObject({ capacity: null, ordinal: 1 });
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
  expect(factOfAppointment(change)).toMatchObject({
    type: 'appointment.deleted',
    state: null,
    previousState: 'ACTIVE',
    providerId: 'p',
    actor: 'crm:sk_1',
  });
});

it('reads a change of an appointment that it does not know as an update', () => {
  const change = AppointmentChanged.fromPartial({
    crmId: 'crm',
    appointmentId: subjectId,
    change: 'UNRECOGNIZED',
    fromState: 'APPOINTMENT_STATE_ACTIVE',
    version: 2,
  });
  expect(factOfAppointment(change)).toMatchObject({
    type: 'appointment.changed',
    state: 'ACTIVE',
    previousState: 'ACTIVE',
    version: 2,
  });
});

it('reads a failed mail, whose template is for support only', () => {
  const mail = {
    crmId: 'crm',
    mailId: 'm',
    aboutId: subjectId,
    template: 'booking-confirmed',
    customerId: 'c',
    providerId: 'p',
  };
  expect(factOfMail(mail)).toMatchObject({
    type: 'mail.failed',
    subjectId,
    version: 0,
    customerId: 'c',
    providerId: 'p',
    cause: 'booking-confirmed',
    actor: 'service',
  });
  expect(factOfMail(MailFailed.fromPartial({ crmId: 'crm', mailId: 'm', aboutId: subjectId }))).toMatchObject({
    customerId: null,
    providerId: null,
  });
});
