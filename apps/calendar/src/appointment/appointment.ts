import { readFunction } from '@scheduling/postgres';
import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

/** What requests for single appointments and for series have in common. */
export interface AppointmentDetails {
  capacity: number;
  acceptBookings: boolean;
  resourceReference: string;
  productReference: string;
  description?: string | undefined;
  contactReference?: string | undefined;
  notes?: string | undefined;
  address?: Location | undefined;
  price?: { value: number; currency: string } | undefined;
  metadata?: Record<string, string> | null | undefined;
}

/** The columns that {@link AppointmentDetails} fill, but the metadata, because digests of content cover them. */
export function detailColumns(details: AppointmentDetails) {
  const {
    capacity,
    acceptBookings,
    resourceReference,
    productReference,
    description = null,
    contactReference = null,
    notes = null,
    price,
  } = details;
  const address = details.address === undefined ? null : JSON.stringify(details.address);
  const [priceValue, priceCurrency] = [price?.value ?? null, price?.currency ?? null];
  return {
    capacity,
    acceptBookings,
    resourceReference,
    productReference,
    description,
    contactReference,
    notes,
    address,
    priceValue,
    priceCurrency,
  };
}

/**
 * Appointments as objects of the REST interface (2.5), as JSON, in the order of the ids, without those that do not
 * exist; see appointment-json.sql.
 */
export async function readAppointments(
  { archiveAfterDays, database }: CalendarDependencies,
  crmId: string,
  ids: string[],
): Promise<string[]> {
  const request = { crmId, ids, archiveAfterDays };
  const rows = await readFunction<{ appointment: string }>(database.kysely, {
    name: 'read_appointments_by_id',
    request,
  });
  return rows.map(({ appointment }) => appointment);
}
