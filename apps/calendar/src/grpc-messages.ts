import {
  type BookingRules as BookingRulesMessage,
  Confirmation,
  type GetParticipationMailDataResponse,
  type Location as LocationMessage,
  type RemovedParticipation as RemovedParticipationMessage,
  type Timeslot,
} from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { enumName, type EnumName, withoutNulls } from '@scheduling/rpc';
import type { RemovedParticipation } from './erasure/remove-customer.ts';
import type { Location } from './db/schema.ts';
import type { ParticipationMailData } from './participation/get-participation-mail-data.ts';
import type { ListPart } from './list-part.ts';
import type { BookingRules } from './slot/booking-rules.ts';
import type { TimeslotRecord } from './timeslot/timeslot.ts';

export function toTimeslotMessage({ json, appointments }: TimeslotRecord): Timeslot {
  return { json: Buffer.from(json), appointmentsJson: toJsonList(appointments) };
}

export function toMailDataMessage(mailData: ParticipationMailData): GetParticipationMailDataResponse {
  const { startsAt, endsAt, address, priceValue, priceCurrency, ...others } = mailData;
  return {
    ...withoutNulls(others),
    start: new Date(startsAt),
    end: new Date(endsAt),
    address: toLocationMessage(address),
    price: priceValue === null ? undefined : { value: priceValue, currency: priceCurrency! },
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
  code: ErrorCode,
  pointer = '/state',
): EnumName<Enum> {
  const name = enumName(values, value);
  if (name === undefined) throw new DomainError(code, { errors: [{ pointer, detail: 'is not a known value' }] });
  return name;
}

function toLocationMessage(location: Location | null): LocationMessage | undefined {
  if (location === null) return undefined;
  return typeof location === 'string'
    ? { kind: { $case: 'text', value: location } }
    : { kind: { $case: 'address', value: location } };
}
