import { ParticipationState as ParticipationStateMessage } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { DomainError } from '@scheduling/errors';
import { isUniqueViolation, transactOnce, withRows } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { collectFieldErrors, type FieldErrors } from '../field-errors.ts';
import { appendChanges } from '../participation/change-events.ts';
import { type ParticipationState, takesSeat } from '../participation/moves.ts';
import { reservationSeconds } from '../participation/participation.ts';
import { reclaimReservations } from '../participation/reclaim-reservations.ts';
import { requireProvider, type ProviderRow } from '../provider/provider-copy.ts';
import { type AppointmentDetails, type AppointmentRecord, detailColumns, selectAppointments, withParticipations } from './appointment.ts';

export interface EmbeddedParticipation {
  reference: string;
  name: string;
  email: string;
  mobile?: string | undefined;
  note?: string | undefined;
  state: ParticipationState;
}

export interface NewAppointment extends AppointmentDetails {
  crmId: string;
  providerReference: string;
  reference: string;
  /** Date-times as in the interface, in the provider's time zone. */
  start: string;
  end: string;
  participations: EmbeddedParticipation[];
}

export interface CreatedAppointment {
  appointment: AppointmentRecord;
  created: boolean;
}

interface Period {
  startsAt: Date;
  endsAt: Date;
}

/** A retry follows the removal of expired reservations or a concurrent deletion. */
const maxAttempts = 3;

/**
 * Creates one appointment with the participations embedded in the request (interface 4.2), which are never rejected for lack of capacity; sends
 * no mail. Repeated with the same content, it returns the existing appointment. Rejects with `appointment.invalid`, `provider.not_found`,
 * `appointment.reference_taken` or `participation.reference_taken`.
 */
export async function createAppointment(dependencies: CalendarDependencies, request: NewAppointment): Promise<CreatedAppointment> {
  const provider = await requireProvider(dependencies, request);
  const period = readPeriod(request, provider.timeZone);
  const digest = digestOf(request, period);
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    try {
      const answer = await createOrFindAppointment(dependencies, provider, request, period, digest);
      if (answer !== undefined) return answer;
    } catch (error) {
      if (!isUniqueViolation(error, 'participation_reference_key')) throw error;
      if (attempt > 0) throw new DomainError('participation.reference_taken');
      await reclaimReservations(dependencies, request.crmId, request.participations.map((participation) => participation.reference));
    }
  }
  throw new DomainError('appointment.busy');
}

function readPeriod(request: NewAppointment, timeZone: string): Period {
  const errors = collectFieldErrors();
  const startsAt = parseDateTime(request.start, timeZone);
  const endsAt = parseDateTime(request.end, timeZone);
  if (endsAt <= startsAt) errors.add('/end', 'must be after start');
  checkParticipations(errors, request.participations);
  errors.throwIfAny('appointment.invalid');
  return { startsAt, endsAt };
}

function checkParticipations(errors: FieldErrors, participations: EmbeddedParticipation[]): void {
  const seen = new Set<string>();
  for (const [index, { reference }] of participations.entries()) {
    if (seen.has(reference)) errors.add(`/participations/${index}/reference`, 'occurs more than once');
    seen.add(reference);
  }
}

function digestOf(request: NewAppointment, { startsAt, endsAt }: Period): Buffer {
  const participations = request.participations.map(({ reference, name, email, mobile, note, state }) => [reference, name, email, mobile, note, state]);
  return contentDigest([startsAt, endsAt, detailColumns(request), participations]);
}

/** Undefined when the reference existed and was deleted concurrently. */
function createOrFindAppointment(
  { database, archiveAfterDays, bookings }: CalendarDependencies,
  provider: ProviderRow,
  request: NewAppointment,
  period: Period,
  digest: Buffer,
): Promise<CreatedAppointment | undefined> {
  const { crmId, reference } = request;
  return transactOnce(database, crmId, {
    work: async (tx) => {
      const created = await insertAppointment(tx, provider, request, period, digest);
      const appointment = await findAppointment(tx, archiveAfterDays, { crmId, reference });
      if (appointment === undefined) return undefined;
      if (created) for (const { state } of request.participations) bookings.moved(tx, crmId, undefined, state);
      const { row } = appointment;
      if (!created && (row.providerId !== provider.id || !row.contentDigest.equals(digest))) throw new DomainError('appointment.reference_taken');
      return { appointment, created };
    },
    keep: (answer) => answer && { resourceIds: [answer.appointment.row.id], created: answer.created },
    replay: async (tx, { resourceIds, created }) => {
      const appointment = await findAppointment(tx, archiveAfterDays, { crmId, id: resourceIds[0]! });
      if (appointment === undefined) throw new DomainError('appointment.not_found');
      return { appointment, created };
    },
  });
}

/** False when the reference exists. */
async function insertAppointment(
  tx: Transaction<CalendarSchema>,
  provider: ProviderRow,
  request: NewAppointment,
  { startsAt, endsAt }: Period,
  digest: Buffer,
): Promise<boolean> {
  const inserted = await tx
    .insertInto('appointment')
    .values({
      crmId: request.crmId,
      providerId: provider.id,
      reference: request.reference,
      seriesId: null,
      startsAt,
      endsAt,
      taken: request.participations.filter((participation) => takesSeat(participation.state)).length,
      contentDigest: digest,
      ...detailColumns(request),
    })
    .onConflict((conflict) => conflict.constraint('appointment_reference_key').doNothing())
    .returning('id')
    .executeTakeFirst();
  if (inserted !== undefined) await insertEmbedded(tx, request.crmId, inserted.id, request.participations);
  return inserted !== undefined;
}

/**
 * Lists are ordered by id, so ascending ids keep the order of the request. The rows are inserted by reference, so that two requests with the
 * same references cannot deadlock.
 */
async function insertEmbedded(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  appointmentId: string,
  participations: EmbeddedParticipation[],
): Promise<void> {
  if (participations.length === 0) return;
  const ids = participations.map(() => randomUUIDv7()).toSorted();
  const reservedUntil = await endOfReservation(tx);
  const rows = participations.map((participation, index) => ({
    crmId,
    id: ids[index]!,
    appointmentId,
    customerId: null,
    reference: participation.reference,
    name: participation.name,
    email: participation.email,
    mobile: participation.mobile ?? null,
    note: participation.note ?? null,
    state: participation.state,
    exempt: true,
    reservedUntil: participation.state === 'RESERVED' ? reservedUntil : null,
  }));
  await withRows(tx.insertInto('participation'), rows.toSorted((a, b) => (a.reference < b.reference ? -1 : 1))).execute();
  const facts = rows.map((row) => ({
    crmId,
    participationId: row.id,
    version: 1,
    cause: ParticipationChangeCause.CREATED,
    fromState: ParticipationStateMessage.UNSPECIFIED,
    toState: ParticipationStateMessage[row.state],
    notify: false,
  }));
  await appendChanges(tx, facts);
}

async function endOfReservation(tx: Transaction<CalendarSchema>): Promise<Date> {
  const { rows } = await sql<{ end: Date }>`SELECT scheduling_now() + make_interval(secs => ${reservationSeconds}) AS end`.execute(tx);
  return rows[0]!.end;
}

async function findAppointment(
  tx: Transaction<CalendarSchema>,
  archiveAfterDays: number,
  key: { crmId: string } & ({ reference: string } | { id: string }),
): Promise<AppointmentRecord | undefined> {
  const query = selectAppointments(tx, archiveAfterDays).where('crmId', '=', key.crmId);
  const rows = await ('id' in key ? query.where('id', '=', key.id) : query.where('reference', '=', key.reference)).execute();
  return (await withParticipations(tx, rows))[0];
}

