import { DomainError } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import { callFunction, forgetKeys } from '@scheduling/postgres';
import { type Selectable, sql, type Transaction } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { AppointmentTable, CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { anonymiseParticipations } from '../participation/anonymise-participations.ts';
import type { BookingMetrics } from '../participation/booking-metrics.ts';
import { type CustomerId, lockCustomer } from '../customer/lock-customer.ts';

/** A participation that was removed from its appointment, with what the last mail about it needs. */
export type RemovedParticipation = Pick<
  Selectable<AppointmentTable>,
  'description' | 'startsAt' | 'endsAt' | 'address'
> & { participationId: string; version: number; invited: boolean };

/** A concurrent booking makes the removal start again; after this many attempts it fails as busy. */
const maxAttempts = 8;

/**
 * Removes a customer, or an embedded participant, from the calendar permanently (interface 4.4). Active participations
 * in active appointments that have not ended are removed and their seats freed; without `ignoreFutureAppointments` they
 * cause the removal to be rejected with `customer.has_future_appointments`, and nothing changes. All others are
 * anonymised. No more bookings can be made for this customer. Repeating the call returns the same answer.
 */
export async function removeCustomer(
  { database, bookings }: CalendarDependencies,
  request: CustomerId & { ignoreFutureAppointments: boolean },
): Promise<RemovedParticipation[]> {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const removed = await database.transaction((tx) => tryRemove(tx, bookings, request));
    if (removed !== undefined) return removed;
  }
  throw new DomainError('customer.busy');
}

/**
 * Takes the locks in the same order as every booking: appointments, participations, customer. Undefined, with nothing
 * changed, if a concurrent booking was made in an appointment that is not locked; once the customer is locked there can
 * be no more.
 */
async function tryRemove(
  tx: Transaction<CalendarSchema>,
  bookings: BookingMetrics,
  { ignoreFutureAppointments, ...customer }: CustomerId & { ignoreFutureAppointments: boolean },
): Promise<RemovedParticipation[] | undefined> {
  const appointments = await lockAppointments(tx, customer);
  await lockCustomer(tx, customer);
  const participations = await selectParticipationsOfCustomer(tx, customer);
  const future = new Map(
    appointments.filter(({ isFuture }) => isFuture).map((appointment) => [appointment.id, appointment]),
  );
  const locked = new Set(appointments.map(({ id }) => id));
  if (participations.some(({ appointmentId: id }) => !locked.has(id))) return undefined;

  const leaving = participations.filter(
    ({ appointmentId: id, isActive, isOver }) => future.has(id) && isActive && !isOver,
  );
  if (leaving.length > 0 && !ignoreFutureAppointments) {
    throw hasFutureAppointments(leaving.map(({ appointmentId: id }) => future.get(id)!.reference));
  }
  await forgetPendingBookings(tx, customer);
  await forgetInvitations(tx, customer);
  await blankCustomer(tx, customer);
  const creating = participations
    .filter(({ customerId }) => customerId === null)
    .map(({ appointmentId }) => appointmentId);
  await forgetContents(tx, customer.crmId, creating);
  await forgetKeys(tx, customer.crmId, [customer.customerId, ...participations.map(({ id }) => id), ...creating]);
  await leaveAppointments(tx, customer, leaving);
  const staying = participations.filter((participation) => !leaving.includes(participation));
  await anonymiseParticipations(
    tx,
    customer.crmId,
    staying.map(({ id }) => id),
  );
  const removed = await selectRemoved(tx, customer);
  bookings.freed(tx, leaving.filter(({ takesSeat }) => takesSeat).length);
  return removed;
}

function lockAppointments(tx: Transaction<CalendarSchema>, { crmId, customerId }: CustomerId) {
  return tx
    .selectFrom('appointment')
    .select(['id', 'reference', sql<boolean>`state = 'ACTIVE' AND ends_at > ${timeOf(crmId)}`.as('isFuture')])
    .where('crmId', '=', crmId)
    .where('id', 'in', (query) =>
      query.selectFrom('participation').select('appointmentId').where('crmId', '=', crmId).where(isOf(customerId)),
    )
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
}

function selectParticipationsOfCustomer(tx: Transaction<CalendarSchema>, { crmId, customerId }: CustomerId) {
  return (
    tx
      .selectFrom('participation')
      .select([
        'crmId',
        'id',
        'appointmentId',
        'state',
        'version',
        'exempt',
        'invited',
        'customerId',
        sql<boolean>`is_active(state)`.as('isActive'),
        sql<boolean>`takes_seat(state)`.as('takesSeat'),
        sql<boolean>`coalesce(reserved_until <= ${timeOf(crmId)}, false)`.as('isOver'),
      ])
      .where('crmId', '=', crmId)
      .where(isOf(customerId))
      // As the locked appointments, and so that a message names them in the same order each time.
      .orderBy('appointmentId')
      .orderBy('id')
      .execute()
  );
}

function isOf(customerId: string) {
  return sql<boolean>`(customer_id = ${customerId} OR (id = ${customerId} AND customer_id IS NULL))`;
}

/** What somebody with the customer's address wanted to book at the same provider, and has not confirmed. */
async function forgetPendingBookings(
  tx: Transaction<CalendarSchema>,
  { crmId, customerId }: CustomerId,
): Promise<void> {
  await sql`
    DELETE FROM pending_booking AS pending
     USING customer
     WHERE customer.crm_id = ${crmId} AND customer.id = ${customerId}
       AND pending.crm_id = ${crmId} AND pending.provider_id = customer.provider_id
       AND (address_key(pending.email) = address_key(customer.email) OR pending.customer_id = customer.id)`.execute(tx);
}

async function forgetInvitations(tx: Transaction<CalendarSchema>, { crmId, customerId }: CustomerId): Promise<void> {
  await tx.deleteFrom('invitation').where('crmId', '=', crmId).where('customerId', '=', customerId).execute();
}

async function blankCustomer(tx: Transaction<CalendarSchema>, { crmId, customerId }: CustomerId): Promise<void> {
  await tx
    .updateTable('customer')
    .set({
      reference: null,
      userName: null,
      email: null,
      mobile: null,
      language: null,
      erasedAt: sql<Date>`coalesce(erased_at, clock_timestamp())`,
    })
    .where('crmId', '=', crmId)
    .where('id', '=', customerId)
    .execute();
}

/**
 * An appointment's digest covers its embedded participants too; once it is cleared, a retry of the creation is rejected
 * because the reference is taken.
 */
async function forgetContents(tx: Transaction<CalendarSchema>, crmId: string, appointmentIds: string[]): Promise<void> {
  if (appointmentIds.length === 0) return;
  await tx
    .updateTable('appointment')
    .set({ contentDigest: Buffer.alloc(0) })
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${appointmentIds}::uuid[])`)
    .execute();
}

type Leaving = Awaited<ReturnType<typeof selectParticipationsOfCustomer>>[number];

/** See end-if-empty.sql. */
async function leaveAppointments(
  tx: Transaction<CalendarSchema>,
  { crmId, customerId }: CustomerId,
  leaving: Leaving[],
): Promise<void> {
  if (leaving.length === 0) return;
  await tx
    .insertInto('removedParticipation')
    .values(
      leaving.map((participation) => ({
        crmId,
        customerId,
        participationId: participation.id,
        appointmentId: participation.appointmentId,
        version: participation.version + 1,
        invited: participation.invited,
      })),
    )
    .execute();
  const request = { crmId, participationIds: leaving.map(({ id }) => id), origin: originJson() };
  await callFunction(tx, { name: 'leave_appointments', request, locks: '' });
}

function selectRemoved(
  tx: Transaction<CalendarSchema>,
  { crmId, customerId }: CustomerId,
): Promise<RemovedParticipation[]> {
  return tx
    .selectFrom('removedParticipation')
    .innerJoin('appointment', (join) =>
      join
        .onRef('appointment.crmId', '=', 'removedParticipation.crmId')
        .onRef('appointment.id', '=', 'removedParticipation.appointmentId'),
    )
    .select([
      'participationId',
      'version',
      'removedParticipation.invited',
      'description',
      'startsAt',
      'endsAt',
      'address',
    ])
    .where('removedParticipation.crmId', '=', crmId)
    .where('removedParticipation.customerId', '=', customerId)
    .orderBy('startsAt')
    .execute();
}

/** The list of removed participations is needed only until every service has been notified of the erasure. */
export async function forgetRemovedParticipations(
  tx: Transaction<CalendarSchema>,
  { crmId, customerId }: CustomerId,
): Promise<void> {
  await tx.deleteFrom('removedParticipation').where('crmId', '=', crmId).where('customerId', '=', customerId).execute();
}

function hasFutureAppointments(references: string[]): DomainError {
  const shown = references.slice(0, 10).join(', ');
  const more = references.length > 10 ? ` and ${references.length - 10} more` : '';
  return new DomainError('customer.has_future_appointments', {
    text: `The customer takes part in future appointments: ${shown}${more}.`,
  });
}
