import {
  type Appointment,
  AppointmentState as AppointmentStateMessage,
  type Location as LocationMessage,
  type Participation,
  ParticipationState as ParticipationStateMessage,
  type RemovedParticipation as RemovedParticipationMessage,
  type Timeslot,
  TimeslotState as TimeslotStateMessage,
} from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import type { AppointmentRecord } from './appointment/appointment.ts';
import type { RemovedParticipation } from './customer/remove-customer.ts';
import type { AppointmentState, Location } from './db/schema.ts';
import type { ParticipationState } from './participation/moves.ts';
import { type ParticipationRecord, toStateMessage } from './participation/participation.ts';
import type { TimeslotRecord, TimeslotState } from './timeslot/timeslot.ts';

export function toTimeslotMessage({ row, appointments }: TimeslotRecord): Timeslot {
  return {
    reference: row.reference,
    resourceReference: row.resource_reference,
    start: row.starts_at,
    end: row.ends_at,
    raster: row.raster,
    defaultCapacity: row.default_capacity,
    defaultAcceptBookings: row.default_accept_bookings,
    address: toLocationMessage(row.address),
    state: timeslotStates[row.state],
    appointments: appointments.map(toAppointmentMessage),
  };
}

export function toAppointmentMessage({ row, participations }: AppointmentRecord): Appointment {
  return {
    reference: row.reference,
    acceptBookings: row.accept_bookings,
    address: toLocationMessage(row.address),
    archived: row.archived,
    capacity: row.capacity,
    contactReference: row.contact_reference ?? undefined,
    description: row.description ?? undefined,
    start: row.starts_at,
    end: row.ends_at,
    notes: row.notes ?? undefined,
    participations: participations.map(toParticipationMessage),
    price: row.price_value === null ? undefined : { value: Number(row.price_value), currency: row.price_currency ?? '' },
    productReference: row.product_reference,
    resourceReference: row.resource_reference,
    seriesId: row.series_id ?? undefined,
    state: appointmentStates[row.state],
  };
}

export function toParticipationMessage(record: ParticipationRecord): Participation {
  return {
    reference: record.reference,
    email: record.email ?? undefined,
    mobile: record.mobile ?? undefined,
    name: record.name,
    note: record.note ?? undefined,
    state: toStateMessage(record.state),
    messages: record.messages,
    expiresAt: record.reserved_until ?? undefined,
  };
}

export function toRemovedParticipationMessage(record: RemovedParticipation): RemovedParticipationMessage {
  return {
    participationId: record.participation_id,
    version: record.version,
    description: record.description ?? undefined,
    start: record.starts_at,
    end: record.ends_at,
    address: toLocationMessage(record.address),
  };
}

export function fromLocationMessage(message: LocationMessage | undefined): Location | undefined {
  return message?.kind?.value;
}

/** `pointer` is that of the state in the request; a state that this version does not know is a fault of the field. */
export function fromParticipationState(message: ParticipationStateMessage, pointer: string): ParticipationState {
  switch (message) {
    case ParticipationStateMessage.RESERVED:
      return 'RESERVED';
    case ParticipationStateMessage.REQUESTED:
      return 'REQUESTED';
    case ParticipationStateMessage.BOOKED:
      return 'BOOKED';
    case ParticipationStateMessage.CANCELED:
      return 'CANCELED';
    case ParticipationStateMessage.DELETED:
      return 'DELETED';
    case ParticipationStateMessage.UNSPECIFIED:
    case ParticipationStateMessage.UNRECOGNIZED:
      throw unknownState('participation.invalid', pointer);
  }
}

export function fromTimeslotState(message: TimeslotStateMessage, pointer: string): TimeslotState {
  switch (message) {
    case TimeslotStateMessage.CREATED:
      return 'CREATED';
    case TimeslotStateMessage.BOOKABLE:
      return 'BOOKABLE';
    case TimeslotStateMessage.UNSPECIFIED:
    case TimeslotStateMessage.UNRECOGNIZED:
      throw unknownState('timeslot.invalid', pointer);
  }
}

const timeslotStates: Record<TimeslotState, TimeslotStateMessage> = {
  CREATED: TimeslotStateMessage.CREATED,
  BOOKABLE: TimeslotStateMessage.BOOKABLE,
};

const appointmentStates: Record<AppointmentState, AppointmentStateMessage> = {
  ACTIVE: AppointmentStateMessage.ACTIVE,
  CANCELLED: AppointmentStateMessage.CANCELLED,
};

function toLocationMessage(location: Location | null): LocationMessage | undefined {
  if (location === null) return undefined;
  return typeof location === 'string' ? { kind: { $case: 'text', value: location } } : { kind: { $case: 'address', value: location } };
}

function unknownState(code: ErrorCode, pointer: string): DomainError {
  return new DomainError(code, { errors: [{ pointer, detail: 'is not a known state' }] });
}
