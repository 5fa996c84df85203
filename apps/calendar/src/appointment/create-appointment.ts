import { collectFieldErrors, DomainError, type FieldErrors } from '@scheduling/errors';
import { callOnce, isUniqueViolation } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { reclaimReservations } from '../participation/reclaim-reservations.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, withRememberedProvider } from '../provider/remembered-providers.ts';
import {
  type AppointmentDetails,
  type AppointmentRecord,
  detailColumns,
  selectAppointments,
  withParticipations,
} from './appointment.ts';
import {
  type AppointmentContent,
  type EmbeddedParticipation,
  insertionOf,
  type InsertResult,
} from './insert-appointment.ts';

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

/**
 * One retry each to read the provider again and to remove expired reservations, plus a few for races on the same
 * reference.
 */
const maxAttempts = 5;

/**
 * Creates one appointment with the participations embedded in the request (interface 4.2), which are never rejected for
 * lack of capacity; sends no mail. This is one round trip for a provider that the process remembers. Repeated with the
 * same content, it returns the existing appointment. Rejects with `appointment.invalid`, `provider.not_found`,
 * `appointment.reference_taken` or `participation.reference_taken`.
 */
export async function createAppointment(
  dependencies: CalendarDependencies,
  request: NewAppointment,
): Promise<CreatedAppointment> {
  let reclaimed = false;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const answer = await withRememberedProvider(dependencies, request, (provider) =>
      tryToCreate(dependencies, provider, request),
    );
    switch (answer) {
      case 'participation_exists':
        if (reclaimed) throw new DomainError('participation.reference_taken');
        await reclaimReservations(
          dependencies,
          request.crmId,
          request.participations.map((participation) => participation.reference),
        );
        reclaimed = true;
        break;
      case 'provider_changed':
      case 'reference_unsettled':
        break;
      default:
        return answer;
    }
  }
  throw new DomainError('appointment.busy');
}

/**
 * Why an attempt failed in a way that a retry may fix. Unsettled: the appointment existed and was deleted concurrently.
 */
type Obstacle = ProviderChanged | 'participation_exists' | 'reference_unsettled';

async function tryToCreate(
  { database, archiveAfterDays, bookings }: CalendarDependencies,
  provider: ProviderRow,
  request: NewAppointment,
): Promise<CreatedAppointment | Obstacle> {
  const { crmId } = request;
  const content = readContent(request, provider.timeZone);
  const { call, recordOf } = insertionOf(provider, content, archiveAfterDays);
  try {
    return await callOnce(database, crmId, {
      call,
      work: async (db, result: InsertResult) => {
        if (result.outcome === 'exists') return findExisting(db, archiveAfterDays, provider, content);
        if (result.outcome === 'provider_changed') return result.outcome;
        for (const { state } of content.participations) bookings.moved(db, crmId, undefined, state);
        return { appointment: recordOf(result), created: true };
      },
      keep: (answer) =>
        typeof answer === 'string' ? undefined : { resourceIds: [answer.appointment.row.id], created: answer.created },
      replay: async (db, { resourceIds, created }) => {
        const appointment = await findAppointment(db, archiveAfterDays, { crmId, id: resourceIds[0]! });
        if (appointment === undefined) throw new DomainError('appointment.not_found');
        return { appointment, created };
      },
    });
  } catch (error) {
    if (isUniqueViolation(error, 'participation_reference_key')) return 'participation_exists';
    throw error;
  }
}

function readContent(request: NewAppointment, timeZone: string): AppointmentContent {
  const errors = collectFieldErrors();
  const startsAt = parseDateTime(request.start, timeZone);
  const endsAt = parseDateTime(request.end, timeZone);
  if (endsAt <= startsAt) errors.add('/end', 'must be after start');
  checkParticipations(errors, request.participations);
  errors.throwIfAny('appointment.invalid');
  return { ...request, startsAt, endsAt, contentDigest: digestOf(request, startsAt, endsAt) };
}

function checkParticipations(errors: FieldErrors, participations: EmbeddedParticipation[]): void {
  const seen = new Set<string>();
  for (const [index, { reference }] of participations.entries()) {
    if (seen.has(reference)) errors.add(`/participations/${index}/reference`, 'occurs more than once');
    seen.add(reference);
  }
}

function digestOf(request: NewAppointment, startsAt: Date, endsAt: Date): Buffer {
  const participations = request.participations.map(({ reference, name, email, mobile, note, state }) => [
    reference,
    name,
    email,
    mobile,
    note,
    state,
  ]);
  return contentDigest([startsAt, endsAt, detailColumns(request), participations]);
}

async function findExisting(
  db: Kysely<CalendarSchema>,
  archiveAfterDays: number,
  { crmId, id: providerId }: ProviderRow,
  { reference, contentDigest: digest }: AppointmentContent,
): Promise<CreatedAppointment | 'reference_unsettled'> {
  const appointment = await findAppointment(db, archiveAfterDays, { crmId, reference });
  if (appointment === undefined) return 'reference_unsettled';
  const { row } = appointment;
  if (row.providerId !== providerId || !row.contentDigest.equals(digest))
    throw new DomainError('appointment.reference_taken');
  return { appointment, created: false };
}

async function findAppointment(
  db: Kysely<CalendarSchema>,
  archiveAfterDays: number,
  key: { crmId: string } & ({ reference: string } | { id: string }),
): Promise<AppointmentRecord | undefined> {
  const query = selectAppointments(db, key.crmId, archiveAfterDays);
  const rows = await (
    'id' in key ? query.where('id', '=', key.id) : query.where('reference', '=', key.reference)
  ).execute();
  return (await withParticipations(db, rows))[0];
}
