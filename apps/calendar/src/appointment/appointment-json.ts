import { sql } from 'kysely';
import type { AppointmentState, Location } from '../db/schema.ts';
import type { ParticipationState } from '../participation/moves.ts';
import { contactSql, isNotOverSql, messagesSql } from '../participation/participation.ts';

/** What {@link appointmentJson} selects. */
export interface AppointmentJson {
  reference: string;
  acceptBookings: boolean;
  address: Location | null;
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

interface ParticipationJson {
  reference: string;
  email: string | null;
  mobile: string | null;
  name: string;
  note: string | null;
  state: ParticipationState;
  messages: string[] | null;
  expiresAt?: string;
}

const instant = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

const address = `CASE jsonb_typeof(appointment.address)
  WHEN 'object' THEN (SELECT row_to_json(fields) FROM jsonb_to_record(appointment.address) AS fields (city text, "countryCode" text, street text, number text, zip text))
  ELSE appointment.address::json
END`;

const price = `CASE WHEN appointment.price_value IS NOT NULL THEN (
  SELECT row_to_json(fields) FROM (SELECT appointment.price_value AS value, appointment.price_currency AS currency) AS fields
) END`;

const participationColumns = `
  participation.reference,
  ${contactSql.email} AS email,
  ${contactSql.mobile} AS mobile,
  ${contactSql.name} AS name,
  participation.note,
  participation.state,
  nullif(${messagesSql}, '{}') AS messages`;

/** Only a reservation has a time at which it expires. */
const participation = `CASE WHEN participation.reserved_until IS NULL
  THEN (SELECT row_to_json(fields) FROM (SELECT ${participationColumns}) AS fields)
  ELSE (SELECT row_to_json(fields) FROM (SELECT ${participationColumns}, ${instant('participation.reserved_until')} AS "expiresAt") AS fields)
END`;

const participations = `array_to_json(ARRAY(
  SELECT ${participation}
    FROM participation
    LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
   WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND ${isNotOverSql}
   ORDER BY participation.id))`;

/**
 * The appointment of a row with all columns and `archived`, with its participations, as a response of the REST interface contains it (2.5 and 2.6):
 * the same fields in the same order, without white space.
 */
export const appointmentJson = sql.raw<string>(`(SELECT row_to_json(fields)::text FROM (
  SELECT
    appointment.reference,
    appointment.accept_bookings AS "acceptBookings",
    ${address} AS address,
    appointment.archived,
    appointment.capacity,
    appointment.contact_reference AS "contactReference",
    appointment.description,
    ${instant('appointment.starts_at')} AS start,
    ${instant('appointment.ends_at')} AS "end",
    appointment.notes,
    ${participations} AS participations,
    ${price} AS price,
    appointment.product_reference AS "productReference",
    appointment.resource_reference AS "resourceReference",
    appointment.series_id AS "seriesId",
    appointment.state
) AS fields)`);
