import { type Kysely, type Selectable, sql } from 'kysely';
import { archivedUntil } from '../db/clock.ts';
import type { AppointmentTable, CalendarSchema, Location } from '../db/schema.ts';
import type { DescribedAppointment } from '../described-appointment.ts';
import { listParticipationsOfAppointments, type ParticipationRecord } from '../participation/participation.ts';

export type AppointmentRow = Omit<Selectable<AppointmentTable>, 'eventCount'> & { archived: boolean };

/** An appointment as callers see it. */
export interface AppointmentRecord<Row extends DescribedAppointment = AppointmentRow> {
  row: Row;
  participations: ParticipationRecord[];
}

/** What requests for single appointments and for series have in common. */
export interface AppointmentDetails {
  capacity: number;
  acceptBookings: boolean;
  resourceReference: string;
  productReference: string;
  description?: string | undefined;
  contactReference?: string | undefined;
  notes?: string | undefined;
  address?: Location | undefined;
  price?: { value: number; currency: string } | undefined;
}

/** All columns of appointments of a CRM, and whether they are archived by now. */
export function selectAppointments(db: Kysely<CalendarSchema>, crmId: string, archiveAfterDays: number) {
  return db
    .selectFrom('appointment')
    .selectAll('appointment')
    .select(sql<boolean>`appointment.ends_at <= ${archivedUntil(crmId, archiveAfterDays)}`.as('archived'))
    .where('crmId', '=', crmId);
}

export async function withParticipations(
  db: Kysely<CalendarSchema>,
  rows: AppointmentRow[],
): Promise<AppointmentRecord[]> {
  if (rows.length === 0) return [];
  const ids = rows.map((row) => row.id);
  const participations = await listParticipationsOfAppointments(db, rows[0]!.crmId, ids);
  return rows.map((row) => ({ row, participations: participations.get(row.id)! }));
}

/** The columns that {@link AppointmentDetails} fill. */
export function detailColumns(details: AppointmentDetails) {
  const {
    capacity,
    acceptBookings,
    resourceReference,
    productReference,
    description = null,
    contactReference = null,
    notes = null,
    price,
  } = details;
  const address = details.address === undefined ? null : JSON.stringify(details.address);
  const [priceValue, priceCurrency] = [price?.value ?? null, price?.currency ?? null];
  return {
    capacity,
    acceptBookings,
    resourceReference,
    productReference,
    description,
    contactReference,
    notes,
    address,
    priceValue,
    priceCurrency,
  };
}

/** What reading the columns of a new appointment would return. */
export function readBack<Columns extends ReturnType<typeof detailColumns>>(
  columns: Columns,
  { address }: AppointmentDetails,
  archived: boolean,
) {
  const priceValue = columns.priceValue === null ? null : String(columns.priceValue);
  return { ...columns, address: address ?? null, priceValue, state: 'ACTIVE' as const, archived };
}
