import {
  type Appointment,
  AppointmentState,
  type Location as LocationMessage,
  type Participation,
  ParticipationState,
  type RemovedParticipation as RemovedParticipationMessage,
  type Timeslot,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { enumName, type EnumName } from '@scheduling/rpc';
import type { AppointmentRecord } from './appointment/appointment.ts';
import type { RemovedParticipation } from './customer/remove-customer.ts';
import type { Location } from './db/schema.ts';
import type { ParticipationRecord } from './participation/participation.ts';
import type { TimeslotRecord } from './timeslot/timeslot.ts';

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
    state: TimeslotState[row.state],
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
    state: AppointmentState[row.state],
  };
}

export function toParticipationMessage(record: ParticipationRecord): Participation {
  return {
    reference: record.reference,
    email: record.email ?? undefined,
    mobile: record.mobile ?? undefined,
    name: record.name,
    note: record.note ?? undefined,
    state: ParticipationState[record.state],
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

/** A value that this version does not know is a fault of the field that `pointer` names. */
export function fromEnumMessage<Enum extends Record<string, string>>(
  values: Enum,
  value: Enum[keyof Enum],
  { code, pointer }: { code: ErrorCode; pointer: string },
): EnumName<Enum> {
  const name = enumName(values, value);
  if (name === undefined) throw new DomainError(code, { errors: [{ pointer, detail: 'is not a known value' }] });
  return name;
}

function toLocationMessage(location: Location | null): LocationMessage | undefined {
  if (location === null) return undefined;
  return typeof location === 'string' ? { kind: { $case: 'text', value: location } } : { kind: { $case: 'address', value: location } };
}
