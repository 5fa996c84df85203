import type { EraseProviderRequest } from '@scheduling/contracts/calendar/v1';
import type { GetProviderRequest } from '@scheduling/contracts/identity/v1';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { originJson, recordPart } from '@scheduling/messaging';
import { callFunction, forgetKeys } from '@scheduling/postgres';
import { type Kysely, sql, type Transaction } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { closeProvider } from './close-provider.ts';
import { deleteProvider } from './delete-provider.ts';
import { type ProviderRow, requireCopy, requireProvider } from './provider-copy.ts';

/** What a part of an erasure has erased. */
export interface ErasedPart {
  appointments: number;
  timeslots: number;
  /** Resources with opening hours, blocks, invitations and calendars. */
  others: number;
  /** The provider, too: nothing is left. */
  deleted: boolean;
}

/** How much of each kind a part erases at most. Only a single appointment may have more participations than rows. */
const partSize = { appointments: 20, rows: 500 };

/**
 * Erases a part of what calendar has of a provider, and the provider once there is nothing (ADR 43). Appointments are
 * deleted as by a CRM: with their participations, and with events, but without mails. Before anything is erased, it
 * rejects with `provider.has_future_bookings`, with `provider.in_use` if there are customers, with `provider.not_found`,
 * or with `provider.ambiguous`.
 */
export async function eraseProvider(
  dependencies: CalendarDependencies,
  request: EraseProviderRequest,
): Promise<ErasedPart> {
  const { crmId } = request;
  const { database, customers } = dependencies;
  const { provider, isDeleted } = await findProvider(dependencies, request);
  await requireNoFutureBookings(database.kysely, provider);
  // The customers of a deleted provider were deleted before it.
  if (!isDeleted) await customers.closeProvider({ crmId, providerId: provider.id, version: provider.version });
  const part = await database.transaction(async (tx) => {
    await recordPart(tx, 'provider.erase', `${crmId} ${provider.id}`);
    return erasePart(tx, provider);
  });
  if (part.appointments + part.timeslots + part.others > 0) return { ...part, deleted: false };
  if (isDeleted) await closeProvider(dependencies, provider);
  else await deleteProvider(dependencies, { crmId, key: { $case: 'id', value: provider.id } });
  return { ...part, deleted: true };
}

/**
 * If calendar was restored to a time before the provider was deleted, only calendar has it. Then it is not found by a
 * reference that another one has by now: a repeated erasure would be of that one.
 */
async function findProvider(
  dependencies: CalendarDependencies,
  { crmId, reference, id }: EraseProviderRequest,
): Promise<{ provider: ProviderRow; isDeleted: boolean }> {
  const provider =
    id === undefined
      ? await requireProvider(dependencies, { crmId, providerReference: reference })
      : await requireCopy(dependencies, crmId, id);
  const exists = (key: GetProviderRequest['key']): Promise<boolean> =>
    undefinedIfNotFound(dependencies.identity.getProvider({ crmId, key })).then((found) => found !== undefined);
  const isDeleted = !(await exists({ $case: 'id', value: provider.id }));
  if (isDeleted && id === undefined && (await exists({ $case: 'reference', value: reference })))
    throw new DomainError('provider.ambiguous');
  return { provider, isDeleted };
}

/** In the order in which bookings take their locks. */
async function erasePart(tx: Transaction<CalendarSchema>, provider: ProviderRow): Promise<Omit<ErasedPart, 'deleted'>> {
  await requireNoFutureBookings(tx, provider);
  let others = 0;
  for (const table of ['resource_hours', 'resource_block', 'invitation', 'calendar_subscription'])
    others += (await deleteRows(tx, table, provider)).length;
  const timeslots = await deleteRows(tx, 'timeslot', provider);
  await forgetKeys(tx, provider.crmId, timeslots);
  const appointments = await lockAppointments(tx, provider);
  // Who has booked before the locks is seen now; the others find no appointment.
  await requireNoFutureBookings(tx, provider);
  await deleteAppointments(tx, provider, appointments);
  return { appointments: appointments.length, timeslots: timeslots.length, others };
}

async function requireNoFutureBookings(db: Kysely<CalendarSchema>, { crmId, id }: ProviderRow): Promise<void> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::integer AS count
      FROM appointment AS a JOIN participation AS p ON p.crm_id = a.crm_id AND p.appointment_id = a.id
     WHERE a.crm_id = ${crmId} AND a.provider_id = ${id} AND a.ends_at > ${timeOf(crmId)} AND p.state IN ('BOOKED', 'REQUESTED', 'RESERVED')
       AND (p.reserved_until IS NULL OR p.reserved_until > ${timeOf(crmId)})`.execute(db);
  const { count } = rows[0]!;
  if (count > 0)
    throw new DomainError('provider.has_future_bookings', {
      text: `The provider cannot be erased, because it has bookings in the future (${count}).`,
    });
}

/** The ids of the deleted rows; empty texts of those that have none. */
async function deleteRows(
  tx: Transaction<CalendarSchema>,
  table: string,
  { crmId, id }: ProviderRow,
): Promise<string[]> {
  const rowId = table === 'resource_hours' ? sql`NULL::uuid` : sql.ref('id');
  const { rows } = await sql<{ id: string }>`
    DELETE FROM ${sql.table(table)} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${sql.table(table)} WHERE crm_id = ${crmId} AND provider_id = ${id} LIMIT ${partSize.rows} FOR UPDATE))
    RETURNING ${rowId} AS id`.execute(tx);
  return rows.map((row) => row.id);
}

/** Locks the next appointments of a part. */
async function lockAppointments(
  tx: Transaction<CalendarSchema>,
  { crmId, id }: ProviderRow,
): Promise<{ id: string; reference: string }[]> {
  const { rows: appointments } = await sql<{ id: string; reference: string; participations: number }>`
    SELECT id, reference, (SELECT count(*)::integer FROM participation AS p WHERE p.crm_id = a.crm_id AND p.appointment_id = a.id) AS participations
      FROM appointment AS a WHERE crm_id = ${crmId} AND provider_id = ${id} ORDER BY id LIMIT ${partSize.appointments} FOR UPDATE`.execute(
    tx,
  );
  let participations = 0;
  return appointments.filter((appointment, index) => {
    participations += appointment.participations;
    return index === 0 || participations <= partSize.rows;
  });
}

async function deleteAppointments(
  tx: Transaction<CalendarSchema>,
  { crmId, id: providerId }: ProviderRow,
  appointments: { id: string; reference: string }[],
): Promise<void> {
  const ids = appointments.map(({ id }) => id);
  const participations = await tx
    .selectFrom('participation')
    .select('id')
    .where('crmId', '=', crmId)
    .where('appointmentId', '=', sql<string>`ANY(${ids}::uuid[])`)
    .execute();
  for (const { reference } of appointments)
    await callFunction(tx, {
      name: 'delete_appointments',
      request: { crmId, providerId, reference, origin: originJson() } as { crmId: string },
    });
  await forgetKeys(tx, crmId, [...ids, ...participations.map(({ id }) => id)]);
}
