import { ParticipationState as ParticipationStateMessage } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { CalendarSchema } from '../db/schema.ts';
import { changeJson } from '../participation/change-events.ts';
import { type ParticipationState, takesSeat } from '../participation/moves.ts';
import { reservationSeconds } from '../participation/participation.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type AppointmentDetails, type AppointmentRecord, detailColumns } from './appointment.ts';

export interface EmbeddedParticipation {
  reference: string;
  name: string;
  email: string;
  mobile?: string | undefined;
  note?: string | undefined;
  state: ParticipationState;
}

export interface AppointmentContent extends AppointmentDetails {
  reference: string;
  startsAt: Date;
  endsAt: Date;
  contentDigest: Buffer;
  participations: EmbeddedParticipation[];
}

/**
 * Writes an appointment with its participations and their events in one round trip, and returns what reading it would return. Violates
 * `participation_reference_key` if one of the participations exists.
 */
export async function insertAppointment(
  db: Kysely<CalendarSchema>,
  provider: ProviderRow,
  content: AppointmentContent,
  archiveAfterDays: number,
): Promise<AppointmentRecord | 'exists' | 'provider_changed'> {
  const row = toRow(provider, content);
  const participations = withIds(content.participations);
  const request = {
    ...row,
    contentDigest: row.contentDigest.toString('hex'),
    providerVersion: provider.version,
    archiveAfterDays,
    reservationSeconds,
    participations,
    events: participations.map((participation) => creationOf(provider.crmId, participation)),
  };
  const result: InsertResult = await callFunction(db, { name: 'create_appointment', request, locks: row.reference });
  return result.outcome === 'created' ? toRecord(row, content, participations, result) : result.outcome;
}

/** See create-appointment.sql. */
type InsertResult = { outcome: 'exists' | 'provider_changed' } | CreatedResult;

interface CreatedResult {
  outcome: 'created';
  id: string;
  archived: boolean;
  reservedUntil: string;
}

interface NewParticipation extends EmbeddedParticipation {
  id: string;
}

/** The columns of the appointment. */
type NewRow = ReturnType<typeof toRow>;

function toRow({ crmId, id: providerId }: ProviderRow, content: AppointmentContent) {
  const { reference, startsAt, endsAt, contentDigest } = content;
  const taken = content.participations.filter(({ state }) => takesSeat(state)).length;
  return { crmId, providerId, reference, startsAt, endsAt, taken, contentDigest, ...detailColumns(content) };
}

/** Lists are ordered by id, so ascending ids keep the order of the request. */
function withIds(participations: EmbeddedParticipation[]): NewParticipation[] {
  const ids = participations.map(() => randomUUIDv7()).toSorted();
  return participations.map((participation, index) => ({ ...participation, id: ids[index]! }));
}

function creationOf(crmId: string, { id, state }: NewParticipation) {
  return changeJson({
    crmId,
    participationId: id,
    version: 1,
    cause: ParticipationChangeCause.CREATED,
    fromState: ParticipationStateMessage.UNSPECIFIED,
    toState: ParticipationStateMessage[state],
    notify: false,
  });
}

function toRecord(row: NewRow, { address }: AppointmentContent, participations: NewParticipation[], result: CreatedResult): AppointmentRecord {
  const { id, archived } = result;
  const priceValue = row.priceValue === null ? null : String(row.priceValue);
  const reservedUntil = new Date(result.reservedUntil);
  return {
    row: { ...row, id, seriesId: null, address: address ?? null, priceValue, state: 'ACTIVE', archived },
    participations: participations.map(({ mobile = null, note = null, ...participation }) => ({
      ...participation,
      mobile,
      note,
      messages: [],
      reservedUntil: participation.state === 'RESERVED' ? reservedUntil : null,
    })),
  };
}
