import { AppointmentState, ParticipationState } from '@scheduling/contracts/calendar/v1';
import {
  AppointmentChange,
  type AppointmentChanged,
  CustomerChange,
  type CustomerChanged,
  type MailFailed,
  type ParticipationChanged,
  ParticipationChangeCause,
} from '@scheduling/contracts/events/v1';
import type { CrmEventType } from '@scheduling/events';
import { enumName } from '@scheduling/rpc';
import type { IncomingEvent } from './record-events.ts';

/** What an event of another service says, without its id. */
export type Fact = Omit<IncomingEvent, 'id'> & { type: CrmEventType };

export function factOfParticipation(change: ParticipationChanged): Fact {
  return {
    crmId: change.crmId,
    type: typeOfParticipation(change.cause),
    subjectId: change.participationId,
    version: change.version,
    providerId: change.providerId,
    actor: change.actor,
    appointmentId: change.appointmentId,
    previousAppointmentId: change.previousAppointmentId ?? null,
    customerId: change.customerId ?? null,
    state: enumName(ParticipationState, change.toState) ?? null,
    previousState: enumName(ParticipationState, change.fromState) ?? null,
    capacity: null,
    exempt: change.exempt,
    cause: enumName(ParticipationChangeCause, change.cause) ?? null,
    ordinal: change.ordinal,
    previousOrdinal: change.previousOrdinal || null,
  };
}

export function factOfAppointment(change: AppointmentChanged): Fact {
  const { type, state } = appointmentChanges[enumName(AppointmentChange, change.change) ?? 'UPDATED'];
  return {
    ...ofNoParticipation,
    crmId: change.crmId,
    type,
    state,
    subjectId: change.appointmentId,
    version: change.version,
    providerId: change.providerId,
    actor: change.actor,
    previousState: enumName(AppointmentState, change.fromState) ?? null,
    capacity: state === null ? null : change.capacity,
    ordinal: change.ordinal,
  };
}

export function factOfCustomer(change: CustomerChanged): Fact {
  return {
    ...ofNoParticipation,
    crmId: change.crmId,
    type: customerTypes[enumName(CustomerChange, change.change) ?? 'UPDATED'],
    subjectId: change.customerId,
    version: change.version,
    providerId: change.providerId,
    actor: change.actor,
  };
}

export function factOfMail(mail: MailFailed): Fact {
  return {
    ...ofNoParticipation,
    crmId: mail.crmId,
    type: 'mail.failed',
    subjectId: mail.aboutId,
    version: 0,
    providerId: mail.providerId ?? null,
    customerId: mail.customerId ?? null,
    cause: mail.template,
    actor: 'service',
  };
}

const ofNoParticipation = {
  appointmentId: null,
  previousAppointmentId: null,
  customerId: null,
  state: null,
  previousState: null,
  capacity: null,
  exempt: null,
  cause: null,
  ordinal: null,
  previousOrdinal: null,
} satisfies Partial<Fact>;

function typeOfParticipation(cause: ParticipationChangeCause): CrmEventType {
  switch (cause) {
    case ParticipationChangeCause.CREATED:
      return 'participation.created';
    case ParticipationChangeCause.MOVED:
      return 'participation.moved';
    case ParticipationChangeCause.REMOVED:
      return 'participation.removed';
    default:
      return 'participation.changed';
  }
}

const appointmentChanges = {
  CREATED: { type: 'appointment.created', state: 'ACTIVE' },
  UPDATED: { type: 'appointment.changed', state: 'ACTIVE' },
  CANCELLED: { type: 'appointment.cancelled', state: 'CANCELLED' },
  DELETED: { type: 'appointment.deleted', state: null },
} as const satisfies Record<string, Pick<Fact, 'type'> & { state: keyof typeof AppointmentState | null }>;

const customerTypes = {
  CREATED: 'customer.created',
  UPDATED: 'customer.changed',
  DELETED: 'customer.deleted',
} as const;
