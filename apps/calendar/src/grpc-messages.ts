import {
  type Appointment,
  AppointmentState,
  type BookingRules as BookingRulesMessage,
  Confirmation,
  type Location as LocationMessage,
  type Participation,
  ParticipationState,
  type RemovedParticipation as RemovedParticipationMessage,
  type Timeslot,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { enumName, type EnumName, withoutNulls } from '@scheduling/rpc';
import type { LocationJson } from './appointment/appointment-json.ts';
import type { DescribedAppointment } from './described-appointment.ts';
import type { RemovedParticipation } from './erasure/remove-customer.ts';
import type { Location } from './db/schema.ts';
import type { ParticipationRecord } from './participation/participation.ts';
import type { ListPart } from './list-part.ts';
import type { BookingRules } from './slot/booking-rules.ts';
import type { TimeslotJson, TimeslotRecord } from './timeslot/timeslot.ts';

export function toTimeslotMessage({ json, appointments }: TimeslotRecord): Timeslot {
  const { address, start, end, state, ...fields } = JSON.parse(json) as TimeslotJson;
  return {
    ...fields,
    start: new Date(start),
    end: new Date(end),
    address: parseLocation(address),
    state: TimeslotState[state],
    appointmentsJson: toJsonList(appointments),
  };
}

export function toAppointmentMessage(row: DescribedAppointment): Appointment {
  return {
    ...withoutNulls(row),
    address: toLocationMessage(row.address),
    start: row.startsAt,
    end: row.endsAt,
    price: row.priceValue === null ? undefined : { value: Number(row.priceValue), currency: row.priceCurrency ?? '' },
    state: AppointmentState[row.state],
  };
}

export function toParticipationMessage(record: ParticipationRecord): Participation {
  return {
    ...withoutNulls(record),
    state: ParticipationState[record.state],
    expiresAt: record.reservedUntil ?? undefined,
  };
}

export function toRemovedParticipationMessage(record: RemovedParticipation): RemovedParticipationMessage {
  return {
    ...withoutNulls(record),
    start: record.startsAt,
    end: record.endsAt,
    address: toLocationMessage(record.address),
    neverInvited: !record.invited,
  };
}

export function toListMessage({ elements, nextCursor }: ListPart): { json: Buffer; nextCursor: string | undefined } {
  return { json: toJsonList(elements), nextCursor };
}

/** The objects, separated by commas. */
export function toJsonList(elements: string[]): Buffer {
  return Buffer.from(elements.join(','));
}

export function toRulesMessage(rules: BookingRules): BookingRulesMessage {
  return { ...withoutNulls(rules), confirmation: Confirmation[rules.confirmation] };
}

export function fromLocationMessage(message: LocationMessage | undefined): Location | undefined {
  return message?.kind?.value;
}

/** A value that this version does not know is reported as an error in the field that `pointer` names. */
export function fromEnumMessage<Enum extends Record<string, string>>(
  values: Enum,
  value: Enum[keyof Enum],
  { code, pointer }: { code: ErrorCode; pointer: string },
): EnumName<Enum> {
  const name = enumName(values, value);
  if (name === undefined) throw new DomainError(code, { errors: [{ pointer, detail: 'is not a known value' }] });
  return name;
}

function parseLocation(location: LocationJson | null): LocationMessage | undefined {
  return toLocationMessage(location instanceof Object ? withoutNulls(location) : location);
}

function toLocationMessage(location: Location | null): LocationMessage | undefined {
  if (location === null) return undefined;
  return typeof location === 'string'
    ? { kind: { $case: 'text', value: location } }
    : { kind: { $case: 'address', value: location } };
}
