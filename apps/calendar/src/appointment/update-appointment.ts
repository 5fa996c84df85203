import { ParticipationState as ParticipationStateMessage } from '@scheduling/contracts/calendar/v1';
import { AppointmentChange, ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';
import { type Selectable, sql, type Transaction, type Updateable } from 'kysely';
import { isDeepStrictEqual } from 'node:util';
import { parseDateTime } from '../date-time.ts';
import type { AppointmentTable, CalendarSchema, Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { appendAppointmentChange, appendChanges, newMailEvent } from '../events/append-events.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { readAppointments } from './appointment.ts';
import type { AppointmentKey } from './get-appointment.ts';
import { lockAppointment } from './lock-appointment.ts';

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
  sendMails: boolean;
}

type Row = Selectable<AppointmentTable>;

/**
 * Changes the fields that are given (interface 4.2). Like the creation of an appointment it is never rejected for what
 * else takes place at that time, and nobody loses a seat. If what participants see of it changes, those who are BOOKED
 * or REQUESTED get a mail. Returns an object of the REST interface (2.5), as JSON. Rejects with `appointment.invalid`, `appointment.not_found`, `appointment.cancelled` or
 * `provider.not_found`.
 */
export async function updateAppointment(
  dependencies: CalendarDependencies,
  request: AppointmentUpdate,
): Promise<string> {
  const { crmId } = request;
  const provider = await requireProvider(dependencies, request);
  return dependencies.database.transaction(async (tx) => {
    const present = await lockAppointment(tx, dependencies.bookings, {
      crmId,
      providerId: provider.id,
      reference: request.appointmentReference,
    });
    if (present.state === 'CANCELLED')
      throw new DomainError('appointment.cancelled', { text: 'The appointment is cancelled and cannot be changed.' });
    const changes = readChanges(present, request, provider.timeZone);
    const changed = await tx
      .updateTable('appointment')
      // At least one column.
      .set({ ...changes, crmId })
      .where('crmId', '=', crmId)
      .where('id', '=', present.id)
      .returningAll()
      .executeTakeFirstOrThrow();
    if (!isDeepStrictEqual(changed, present)) await recordUpdate(tx, present);
    if (!isDeepStrictEqual(shownOf(changed), shownOf(present))) await tellParticipants(tx, present, request.sendMails);
    const [updated] = await readAppointments(dependencies, tx, crmId, [present.id]);
    return updated!;
  });
}

/** Undefined keeps a column as it is. */
function readChanges(present: Row, update: AppointmentUpdate, timeZone: string): Updateable<AppointmentTable> {
  const errors = collectFieldErrors();
  const startsAt = update.start === undefined ? undefined : parseDateTime(update.start, timeZone);
  const endsAt = update.end === undefined ? undefined : parseDateTime(update.end, timeZone);
  if ((endsAt ?? present.endsAt) <= (startsAt ?? present.startsAt)) errors.add('/end', 'must be after start');
  errors.throwIfAny('appointment.invalid');
  const { capacity, acceptBookings, description, contactReference, notes, address } = update;
  return {
    startsAt,
    endsAt,
    capacity,
    acceptBookings,
    ...emptyToNull({ description, contactReference, notes }),
    address: address && JSON.stringify(address),
  };
}

async function recordUpdate(tx: Transaction<CalendarSchema>, present: Row): Promise<void> {
  await tx
    .updateTable('appointment')
    .set({ revision: present.revision + 1 })
    .where('crmId', '=', present.crmId)
    .where('id', '=', present.id)
    .execute();
  await appendAppointmentChange(tx, AppointmentChange.UPDATED, present);
}

/** What participants see of an appointment. */
function shownOf({ startsAt, endsAt, description, address }: Row) {
  return { startsAt, endsAt, description, address };
}

/** A new version of each, which the event in the person's calendar gets as well. */
async function tellParticipants(
  tx: Transaction<CalendarSchema>,
  { crmId, id, providerId }: Row,
  notify: boolean,
): Promise<void> {
  const participations = await tx
    .updateTable('participation')
    .set({
      version: sql<number>`version + 1`,
      ...(notify && { mailEventId: newMailEvent, invited: sql<boolean>`invited OR state = 'BOOKED'` }),
    })
    .where('crmId', '=', crmId)
    .where('appointmentId', '=', id)
    .where('state', 'in', ['BOOKED', 'REQUESTED'])
    .returning([
      'id',
      'customerId',
      'version',
      'state',
      'exempt',
      'mailEventId',
      'invited',
      sql<string | null>`old.mail_event_id`.as('previousMailEventId'),
    ])
    .execute();
  const changes = participations.map((participation) => ({
    crmId,
    participationId: participation.id,
    version: participation.version,
    cause: ParticipationChangeCause.APPOINTMENT_CHANGED,
    fromState: ParticipationStateMessage[participation.state],
    toState: ParticipationStateMessage[participation.state],
    appointmentId: id,
    providerId,
    customerId: participation.customerId ?? undefined,
    exempt: participation.exempt,
    mail: notify ? participation : undefined,
  }));
  await appendChanges(tx, changes);
}
