import { originJson } from '@scheduling/messaging';
import type { FunctionCall } from '@scheduling/postgres';
import { randomUUIDv7 } from 'node:crypto';
import { type ParticipationState, takesSeat } from '../participation/moves.ts';
import { reservationSeconds } from '../participation/participation.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type AppointmentDetails, type AppointmentRecord, detailColumns, readBack } from './appointment.ts';

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

/** An appointment with its participations, as it is written in one round trip. */
export interface AppointmentInsertion {
  /** Violates `participation_reference_key` if one of the participations exists. */
  call: FunctionCall;
  /** What reading the appointment would return. */
  recordOf: (result: CreatedResult) => AppointmentRecord;
}

/** The call that writes an appointment with its participations and their events. */
export function insertionOf(
  provider: ProviderRow,
  content: AppointmentContent,
  archiveAfterDays: number,
): AppointmentInsertion {
  const row = toRow(provider, content);
  const participations = withIds(content.participations);
  const request = {
    ...row,
    contentDigest: row.contentDigest.toString('hex'),
    providerVersion: provider.version,
    archiveAfterDays,
    reservationSeconds,
    participations,
    origin: originJson(),
  };
  return {
    call: { name: 'create_appointment', request, locks: row.reference },
    recordOf: (result) => toRecord(row, content, participations, result),
  };
}

/** See create-appointment.sql. */
export type InsertResult = { outcome: 'exists' } | { outcome: 'provider_changed' } | CreatedResult;

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

function toRecord(
  row: NewRow,
  content: AppointmentContent,
  participations: NewParticipation[],
  result: CreatedResult,
): AppointmentRecord {
  const { id, archived } = result;
  const reservedUntil = new Date(result.reservedUntil);
  return {
    row: { ...readBack(row, content, archived), id, seriesId: null, whenEmpty: null, anonymised: false, revision: 1 },
    participations: participations.map(({ mobile = null, note = null, ...participation }) => ({
      ...participation,
      appointmentReference: content.reference,
      customerReference: null,
      mobile,
      note,
      messages: [],
      reservedUntil: participation.state === 'RESERVED' ? reservedUntil : null,
    })),
  };
}
