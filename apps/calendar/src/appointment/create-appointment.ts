import { collectFieldErrors, type FieldErrors } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime } from '../date-time.ts';
import type { ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingCall, settle, type Settled } from '../participation/settle.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type AppointmentDetails, detailColumns, readAppointments } from './appointment.ts';

interface EmbeddedParticipation {
  reference: string;
  name: string;
  email: string;
  mobile?: string | undefined;
  note?: string | undefined;
  state: ParticipationState;
  metadata?: Record<string, string> | null | undefined;
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

/**
 * Creates one appointment with the participations embedded in the request (interface 4.2), which are never rejected for
 * lack of capacity; sends no mail; see create-appointment.sql. Repeated with the same content, it returns the existing
 * appointment. Rejects with `appointment.invalid`, `provider.not_found`, `appointment.reference_taken`,
 * `participation.reference_taken` or `appointment.busy`.
 */
export function createAppointment(
  dependencies: CalendarDependencies,
  request: NewAppointment,
): Promise<Settled<{ appointment: string }>> {
  const { crmId, providerReference } = request;
  return settle(dependencies, {
    provider: { crmId, providerReference },
    references: request.participations.map(({ reference }) => reference),
    call: (provider) => creationCall(provider, request, dependencies.archiveAfterDays),
    read: async (id) => {
      const [appointment] = await readAppointments(dependencies, crmId, [id]);
      return appointment === undefined ? undefined : { appointment };
    },
    notFound: 'appointment.not_found',
    busy: 'appointment.busy',
  });
}

function creationCall({ timeZone }: ProviderRow, request: NewAppointment, archiveAfterDays: number): BookingCall {
  const { reference } = request;
  const { startsAt, endsAt } = readPeriod(request, timeZone);
  const content = {
    ...detailColumns(request),
    metadata: request.metadata,
    reference,
    startsAt,
    endsAt,
    contentDigest: digestOf(request, startsAt, endsAt).toString('hex'),
    archiveAfterDays,
    participations: withIds(request.participations),
    origin: originJson(),
  };
  return { name: 'create_appointment', request: content, locks: reference };
}

function readPeriod(request: NewAppointment, timeZone: string): { startsAt: Date; endsAt: Date } {
  const errors = collectFieldErrors();
  const startsAt = parseDateTime(request.start, timeZone);
  const endsAt = parseDateTime(request.end, timeZone);
  if (endsAt <= startsAt) errors.add('/end', 'must be after start');
  checkParticipations(errors, request.participations);
  errors.throwIfAny('appointment.invalid');
  return { startsAt, endsAt };
}

/** Lists are ordered by id, so ascending ids keep the order of the request. */
function withIds(participations: EmbeddedParticipation[]) {
  const ids = participations.map(() => randomUUIDv7()).toSorted();
  return participations.map((participation, index) => ({ ...participation, id: ids[index]! }));
}

function checkParticipations(errors: FieldErrors, participations: EmbeddedParticipation[]): void {
  const seen = new Set<string>();
  for (const [index, { reference }] of participations.entries()) {
    if (seen.has(reference)) errors.add(`/participations/${index}/reference`, 'occurs more than once');
    seen.add(reference);
  }
}

function digestOf(request: NewAppointment, startsAt: Date, endsAt: Date): Buffer {
  const participations = request.participations.map(({ reference, name, email, mobile, note, state, metadata }) => [
    reference,
    name,
    email,
    mobile,
    note,
    state,
    ...contentOf(metadata),
  ]);
  return contentDigest([startsAt, endsAt, detailColumns(request), participations, ...contentOf(request.metadata)]);
}

/** Whatever their order. Nothing without pairs: digests from before there was metadata have none. */
function contentOf(metadata: Record<string, string> | null | undefined): [string, string][][] {
  return metadata ? [Object.entries(metadata).toSorted(([a], [b]) => (a < b ? -1 : 1))] : [];
}
