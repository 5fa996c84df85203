import { toTimeJson } from '@scheduling/runtime';
import type { AppointmentState, Location, PostalAddress } from '../db/schema.ts';
import type { DescribedAppointment } from '../described-appointment.ts';
import type { ParticipationState } from '../participation/moves.ts';
import type { ParticipationRecord } from '../participation/participation.ts';
import type { AppointmentRecord } from './appointment.ts';

/** What appointment-json.sql writes, in its order. */
export interface AppointmentJson {
  reference: string;
  acceptBookings: boolean;
  address: LocationJson | null;
  archived: boolean;
  capacity: number;
  contactReference: string | null;
  description: string | null;
  start: string;
  end: string;
  notes: string | null;
  participations: ParticipationJson[];
  price: { value: number; currency: string } | null;
  productReference: string;
  resourceReference: string;
  seriesId: string | null;
  state: AppointmentState;
}

/** All fields of an address, also those that were not given. */
export type LocationJson = Record<keyof PostalAddress, string | null> | string;

interface ParticipationJson {
  reference: string;
  appointmentReference: string;
  customerReference: string | null;
  email: string | null;
  mobile: string | null;
  name: string;
  note: string | null;
  state: ParticipationState;
  messages: string[] | null;
  expiresAt?: string;
}

/** The same text as appointment-json.sql writes, without a statement. */
export function writeAppointment({ row, participations }: AppointmentRecord<DescribedAppointment>): string {
  const json: AppointmentJson = {
    reference: row.reference,
    acceptBookings: row.acceptBookings,
    address: toLocationJson(row.address),
    archived: row.archived,
    capacity: row.capacity,
    contactReference: row.contactReference,
    description: row.description,
    start: toTimeJson(row.startsAt),
    end: toTimeJson(row.endsAt),
    notes: row.notes,
    participations: participations.map(toParticipationJson),
    price: row.priceValue === null ? null : { value: Number(row.priceValue), currency: row.priceCurrency! },
    productReference: row.productReference,
    resourceReference: row.resourceReference,
    seriesId: row.seriesId,
    state: row.state,
  };
  return JSON.stringify(json);
}

function toParticipationJson(record: ParticipationRecord): ParticipationJson {
  const {
    reference,
    appointmentReference,
    customerReference,
    email,
    mobile,
    name,
    note,
    state,
    messages,
    reservedUntil,
  } = record;
  const fields = {
    reference,
    appointmentReference,
    customerReference,
    email,
    mobile,
    name,
    note,
    state,
    messages: messages.length === 0 ? null : messages,
  };
  return reservedUntil === null ? fields : { ...fields, expiresAt: toTimeJson(reservedUntil) };
}

export function toLocationJson(address: Location | null): LocationJson | null {
  if (!(address instanceof Object)) return address;
  const { city = null, countryCode = null, street = null, number = null, zip = null } = address;
  return { city, countryCode, street, number, zip };
}
