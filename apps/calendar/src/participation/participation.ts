import { DomainError } from '@scheduling/errors';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { ParticipationState } from './moves.ts';

/** How long a reservation holds its seat (interface 8). */
export const reservationSeconds = 180;

/** A participation as callers see it. */
export interface ParticipationRecord {
  id: string;
  reference: string;
  appointmentReference: string;
  /** Null for one that was embedded in the creation of the appointment, and for a reservation without a customer. */
  customerReference: string | null;
  /** The customer's, or as embedded in the creation of the appointment; the same goes for e-mail and mobile. */
  name: string;
  email: string | null;
  mobile: string | null;
  note: string | null;
  state: ParticipationState;
  /** Oldest first. */
  messages: string[];
  /** Set if and only if RESERVED. */
  reservedUntil: Date | null;
}

/** As participation-record.sql writes it. */
export type WrittenRecord<Row extends ParticipationRecord = ParticipationRecord> = Omit<Row, 'reservedUntil'> & {
  reservedUntil: string | null;
};

export function parseRecord<Written extends WrittenRecord>({ reservedUntil, ...fields }: Written) {
  return { ...fields, reservedUntil: reservedUntil === null ? null : new Date(reservedUntil) };
}

/** The columns that a participation may have from its customer. */
const contactSql = {
  name: "coalesce(customer.user_name, participation.name, '')",
  email: 'coalesce(customer.email, participation.email)',
  mobile: 'coalesce(customer.mobile, participation.mobile)',
};

/** The texts of a participation. */
const messagesSql = `ARRAY(
  SELECT text FROM participation_message AS message
   WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id
   ORDER BY message.version)`;

/** All columns of {@link ParticipationRecord}, including expired reservations. */
export function selectParticipations(db: Kysely<CalendarSchema>) {
  return db
    .selectFrom('participation')
    .leftJoin('customer', (join) =>
      join.onRef('customer.crmId', '=', 'participation.crmId').onRef('customer.id', '=', 'participation.customerId'),
    )
    .innerJoin('appointment', (join) =>
      join
        .onRef('appointment.crmId', '=', 'participation.crmId')
        .onRef('appointment.id', '=', 'participation.appointmentId'),
    )
    .select([
      'participation.id',
      'participation.reference',
      'appointment.reference as appointmentReference',
      'customer.reference as customerReference',
      sql.raw<string>(contactSql.name).as('name'),
      sql.raw<string | null>(contactSql.email).as('email'),
      sql.raw<string | null>(contactSql.mobile).as('mobile'),
      'participation.note',
      'participation.state',
      'participation.reservedUntil',
      sql.raw<string[]>(messagesSql).as('messages'),
    ]);
}

/** An expired reservation is hidden, whether or not its row still exists. */
function isNotOver(crmId: string): RawBuilder<boolean> {
  return sql<boolean>`(participation.reserved_until IS NULL OR participation.reserved_until > ${timeOf(crmId)})`;
}

/** Rejects with `participation.not_found`, also for an expired reservation. */
export function requireParticipation(
  db: Kysely<CalendarSchema>,
  { crmId, id }: { crmId: string; id: string },
): Promise<ParticipationRecord> {
  return selectParticipations(db)
    .where('participation.crmId', '=', crmId)
    .where('participation.id', '=', id)
    .where(isNotOver(crmId))
    .executeTakeFirstOrThrow(() => new DomainError('participation.not_found'));
}

/** The participations of the given appointments, by appointment, in order of creation, without expired reservations. */
export async function listParticipationsOfAppointments(
  db: Kysely<CalendarSchema>,
  crmId: string,
  appointmentIds: string[],
): Promise<Map<string, ParticipationRecord[]>> {
  const byAppointment = new Map<string, ParticipationRecord[]>(appointmentIds.map((id) => [id, []]));
  if (appointmentIds.length === 0) return byAppointment;
  for (const { appointmentId, ...record } of await selectParticipationsOfAppointments(
    db,
    crmId,
    appointmentIds,
  ).execute()) {
    byAppointment.get(appointmentId)!.push(record);
  }
  return byAppointment;
}

export function selectParticipationsOfAppointments(
  db: Kysely<CalendarSchema>,
  crmId: string,
  appointmentIds: string[],
) {
  return selectParticipations(db)
    .select('participation.appointmentId')
    .where('participation.crmId', '=', crmId)
    .where(sql<boolean>`participation.appointment_id = ANY(${appointmentIds}::uuid[])`)
    .where(isNotOver(crmId))
    .orderBy('participation.id');
}

/** A caller that forgot to set a capacity learns that there never was a seat. */
export function capacityExhausted(capacity: number | undefined): DomainError {
  return new DomainError(
    'participation.capacity_exhausted',
    capacity === 0 ? { text: 'The appointment has a capacity of 0: it has no seats.' } : {},
  );
}
