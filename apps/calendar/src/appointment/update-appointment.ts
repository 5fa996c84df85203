import { originJson } from '@scheduling/messaging';
import { emptyToNull } from '@scheduling/postgres';
import { parseDateTime } from '../date-time.ts';
import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle } from '../participation/settle.ts';
import type { AppointmentKey } from './get-appointment.ts';

export interface AppointmentUpdate extends AppointmentKey {
  /** Date-times as in the interface, in the provider's time zone. */
  start?: string | undefined;
  end?: string | undefined;
  capacity?: number | undefined;
  acceptBookings?: boolean | undefined;
  /** An empty text clears it; the same goes for the following two. */
  description?: string | undefined;
  contactReference?: string | undefined;
  notes?: string | undefined;
  /** Null clears it. */
  address?: Location | null | undefined;
  /** Null clears it. */
  metadata?: Record<string, string> | null | undefined;
  sendMails: boolean;
}

/**
 * Changes the fields that are given (interface 4.2). Like the creation of an appointment it is never rejected for what
 * else takes place at that time, and nobody loses a seat. If what participants see of it changes, those who are BOOKED
 * or REQUESTED get a mail. Returns an object of the REST interface (2.5), as JSON. Rejects with `appointment.invalid`,
 * `appointment.not_found`, `appointment.cancelled` or `provider.not_found`.
 */
export async function updateAppointment(
  dependencies: CalendarDependencies,
  update: AppointmentUpdate,
): Promise<string> {
  const { crmId, providerReference, appointmentReference: reference, sendMails } = update;
  const { archiveAfterDays } = dependencies;
  const { appointment } = await settle<{ appointment: string }>(dependencies, {
    provider: { crmId, providerReference },
    call: ({ timeZone }) => {
      const changes = columnsOf(update, timeZone);
      const request = { reference, changes, sendMails, archiveAfterDays, origin: originJson() };
      return { name: 'update_appointment', request, locks: reference };
    },
    busy: 'appointment.busy',
  });
  return appointment;
}

/** By their names in the database. Undefined keeps a column as it is. */
function columnsOf(update: AppointmentUpdate, timeZone: string) {
  const {
    start,
    end,
    capacity,
    acceptBookings,
    description,
    contactReference: contact_reference,
    notes,
    address,
    metadata,
  } = update;
  return {
    starts_at: start === undefined ? undefined : parseDateTime(start, timeZone),
    ends_at: end === undefined ? undefined : parseDateTime(end, timeZone),
    capacity,
    accept_bookings: acceptBookings,
    ...emptyToNull({ description, contact_reference, notes }),
    address,
    metadata,
  };
}
